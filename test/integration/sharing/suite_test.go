// Package sharing shows that pods share a GPU: Volcano places them by the memory and cores of each device.
package sharing

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestSharing(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Shared GPUs")
}

// options are those of a cluster on which Volcano shares devices.
var options = cluster.Options{
	GPUNodes: -1, SchedulerConf: "../../../config/volcano-vgpu/volcano-scheduler.conf", SchedulePeriod: 100 * time.Millisecond,
}

var shared = suite.New(options)

// Package volcanojob gives the same Jobs to Volcano's controller, and converted to Tideline, and holds what is different in their
// pods to the tables of docs/reference/pods.md.
package volcanojob

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestVolcanoJobs(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Volcano Jobs, by Volcano and converted")
}

var shared = suite.New(cluster.Options{GPUNodes: 1, GPUsPerNode: 4096, SchedulePeriod: 100 * time.Millisecond})

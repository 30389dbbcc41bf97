// Package pytorchjob gives the same PyTorchJobs to training-operator, and converted to Tideline, and holds what is
// different between the two to what docs/convert.md and docs/reference/pods.md say of it.
package pytorchjob

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil/suite"
	"github.com/tideline-io/tideline/test/testutil/trainingoperator"
)

func TestPyTorchJobs(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "PyTorchJobs, by training-operator and converted")
}

// One large node that no job uses keeps a job without room from holding up the others.
var shared = suite.New(cluster.Options{GPUNodes: 1, GPUsPerNode: 4096, SchedulePeriod: 100 * time.Millisecond},
	trainingoperator.StartWithTFJobs)

// Package topology shows on Volcano where the workers of a job are placed in the network: on nodes in two tiers of HyperNodes.
package topology

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var shared = suite.New(cluster.Options{})

func TestTopology(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Topology")
}

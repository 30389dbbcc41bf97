// Package olm has the Operator Lifecycle Manager install the bundle on a real API server, and upgrade to it from the version
// before, and runs what it installed as a kubelet would.
//
// OLM's operators, a catalog's server and Volcano are the real programs. No kubelet and no kube-scheduler runs, so the test
// places the operator's pod on a simulated node, and runs the pod's container as a process on this machine: process_test.go says
// what is different then.
package olm

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestOLM(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Installation by OLM")
}

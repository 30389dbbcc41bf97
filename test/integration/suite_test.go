// Package integration shows the numbered scenarios of the design on a real API server and Volcano, with the operator as a
// real process. One cluster and one operator serve all specs, each of which has a namespace and nodes of its own, so that they
// run in any order and side by side:
//
//	go tool ginkgo --procs=4 --race --randomize-all ./test/integration
//
// With `go test` they run one after another, which takes longer.
package integration

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Scenarios of elastic training")
}

// Volcano admits gangs by what the whole cluster holds. One large node that no scenario uses keeps a scenario whose nodes are
// full from holding up the others.
//
// A right that no scenario needs is one that the operator should not have. Those to set owner references that block are never
// requests of their own: they are looked at while children are created, where admission plugin
// OwnerReferencesPermissionEnforcement is on, as on OpenShift. ConfigMaps are deleted for merges alone, Queues written for
// profiles, and CostReports told of where there are any, and the suites of these see that they are; profiles and CostReports are
// read live after a conflict alone.
//
// Tiers let surplus be left alone for a while, which none does by default, so that pods are seen to carry it.
var shared = suite.New(cluster.Options{GPUNodes: 1, GPUsPerNode: 256}).
	UseEveryRight(
		"update elastictrainingjobs/finalizers.tideline.io", "update mergejobs/finalizers.tideline.io", "delete configmaps",
		"create queues.scheduling.volcano.sh", "patch queues.scheduling.volcano.sh", "delete queues.scheduling.volcano.sh",
		"patch resourcequotaprofiles/status.tideline.io", "get resourcequotaprofiles.tideline.io",
		"patch costreports/status.tideline.io", "get costreports.tideline.io").
	Configured(func(c *config.Configuration) {
		for i := range c.Tiers {
			c.Tiers[i].MaxMinSurplusRunSeconds = 60
		}
	})

// mainWay is the label of the scenarios that `make test-versions` shows with each version of Volcano and Kubernetes that is
// supported: a gang starts, grows, gives way, grows back, loses a worker, restarts, is suspended, and ends. Other versions are
// what these stand on; the details that other scenarios are about are Tideline's own.
var mainWay = Label("main way")

func newScenario(name string, gpus ...int64) *testutil.Scenario {
	GinkgoHelper()
	return shared.World.NewScenario(GinkgoT(), name, gpus...)
}

// Package pairs shows how surplus gives way under each pair of Volcano's actions that evict.
package pairs

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestPairs(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Scenarios of giving way, by each pair of actions")
}

// The cluster has no nodes but those of the scenario that runs, and one scenario runs at a time: actions by gang evict wherever
// there is surplus.
var shared = suite.New(cluster.Options{GPUNodes: -1, SchedulePeriod: 100 * time.Millisecond})

func newScenario(name string, gpus ...int64) *testutil.Scenario {
	GinkgoHelper()
	return shared.World.NewScenario(GinkgoT(), name, gpus...)
}

// configure has Volcano evict by that pair.
func configure(ctx SpecContext, pair testutil.Evicting) {
	GinkgoHelper()
	if missing := pair.Missing(); missing != "" {
		Skip(missing)
	}
	shipped, err := os.ReadFile("../../../config/volcano/volcano-scheduler.conf")
	Expect(err).NotTo(HaveOccurred(), "config/volcano is read")
	conf, err := pair.Configure(string(shipped))
	Expect(err).NotTo(HaveOccurred(), "config/volcano can have %s", pair.Name)
	Expect(shared.Installation().Cluster.SetSchedulerConf(ctx, conf)).To(Succeed(), "Volcano has %s", pair.Name)
}

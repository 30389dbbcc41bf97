// Package stock shows Tideline on Volcano as its Helm chart configures it: nothing there evicts surplus for a waiting gang, so
// the operator tells surplus to leave.
package stock

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestStock(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Scenarios on Volcano as it is shipped")
}

// shipped is the configuration that Volcano's Helm chart installs, v1.14.1 and v1.15.1.
const shipped = "../../testutil/testdata/volcano-shipped.conf"

// The cluster has no nodes but those of the scenario that runs: what is free elsewhere would let Volcano's plugin overcommit
// admit every gang, and on a cluster in need it does not.
var shared = suite.New(options())

func options() cluster.Options {
	return cluster.Options{GPUNodes: -1, SchedulerConf: shipped, SchedulePeriod: 100 * time.Millisecond}
}

func newScenario(name string, gpus ...int64) *testutil.Scenario {
	GinkgoHelper()
	return shared.World.NewScenario(GinkgoT(), name, gpus...)
}

const (
	cooldown   = 8 * time.Second
	starvation = 2 * time.Second
	// several is time for several evaluations of the arbiter, of which there is at most one a second.
	several = 6 * time.Second
)

// starving is a job that surplus leaves for once it has waited for the starvation time.
func starving(s *testutil.Scenario, name string) *testutil.JobBuilder {
	return s.Job(name).Cooldown(cooldown).Starvation(starvation)
}

// lacks is what the shipped configuration lacks, as the operator and the doctor say it.
var lacks = []string{
	"action preempt is missing", "action reclaim is missing", "plugin gang has no say in preemption",
	"plugin overcommit counts surplus",
}

// sayLacks matches a text that names everything the shipped configuration lacks.
func sayLacks() types.GomegaMatcher {
	var each []types.GomegaMatcher
	for _, l := range lacks {
		each = append(each, ContainSubstring(l))
	}
	return And(each...)
}

// schedulerConfigured is the condition of that name as "True/Configured".
func schedulerConfigured(job *v1beta1.ElasticTrainingJob) string {
	c := testutil.Condition(job, v1beta1.ConditionSchedulerConfigured)
	return string(c.Status) + "/" + c.Reason
}

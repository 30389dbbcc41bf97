package topology

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// inRacks has each step be in one rack, and onNodes on one node.
func inRacks(job *v1beta1.ElasticTrainingJob) {
	job.Spec.Elasticity.StepWithin = &v1beta1.StepWithin{Level: v1beta1.StepInHyperNode, Tier: ptr.To[int32](1)}
}

func onNodes(job *v1beta1.ElasticTrainingJob) {
	job.Spec.Elasticity.StepWithin = &v1beta1.StepWithin{Level: v1beta1.StepOnNode}
}

// surplusBy counts the surplus that has a node, of a job with a core of one, by where it is.
func surplusBy(s *testutil.Scenario, job string, where func(node string) string) func() (map[string]int, error) {
	return func() (map[string]int, error) {
		bound, err := s.Workers(job, testutil.Bound)()
		if err != nil {
			return nil, err
		}
		in := map[string]int{}
		for _, i := range bound {
			if i > 0 {
				in[where(s.Worker(job, i).Spec.NodeName)]++
			}
		}
		return in, nil
	}
}

// rackOf is the rack of a node.
func (p plant) rackOf(node string) string {
	for i := range 2 * racks {
		if p.Node(i) == node {
			return p.rack(i / 2)
		}
	}
	return ""
}

var _ = Describe("Steps that are kept together", func() {
	It("come rack by rack, and leave so", func() {
		// Racks of 2, 6, 3 and 5: wherever the core is, two of them have room for a step.
		p := newPlant("step-racks", 1, 1, 3, 3, 1, 2, 2, 3)
		p.Submit(p.Job("a").Range(1, 13).Step(4).Fitting().With(inRacks))
		Eventually(p.Fetch("a")).Should(testutil.Train(9), "A has two steps")
		Expect(surplusBy(p.Scenario, "a", p.rackOf)()).To(Equal(map[string]int{p.rack(1): 4, p.rack(3): 4}))
		Eventually(p.Fetch("a")).Should(HaveField("Status.Conditions", ContainElement(HaveField("Message", ContainSubstring(
			"9 of 13 workers ready. More are created when the operator sees room for 4 workers in one HyperNode of tier 1"))),
		), "A says what it waits for")

		p.Submit(p.Job("b").Range(8, 8).Starvation(0))
		Eventually(p.Fetch("b")).Should(testutil.Train(8), "B takes what was free, and a place of A's")
		Eventually(p.Fetch("a")).Should(testutil.Train(5), "the rest of the step leaves")
		Expect(surplusBy(p.Scenario, "a", p.rackOf)()).To(Or(
			Equal(map[string]int{p.rack(1): 4}), Equal(map[string]int{p.rack(3): 4})), "a whole step stays")
		Expect(p.Read("a").Status.Restarts).To(BeZero(), "giving way is no restart")
	})

	It("come node by node", func() {
		s := shared.World.NewScenario(GinkgoT(), "step-nodes", 9, 3, 5)
		s.Submit(s.Job("a").Range(1, 17).Step(4).Fitting().With(onNodes))
		Eventually(s.Fetch("a")).Should(testutil.Train(13), "A has three steps, wherever its core is")
		Expect(surplusBy(s, "a", func(node string) string { return node })()).To(Equal(map[string]int{s.Node(0): 8, s.Node(2): 4}))
	})
})

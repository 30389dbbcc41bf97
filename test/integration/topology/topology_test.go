package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "volcano.sh/apis/pkg/apis/topology/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// several is a few of Volcano's cycles.
const several = 5 * time.Second

// racks is how many racks a scenario has, of two nodes each. Two racks are under one spine.
const racks = 4

// plant is a scenario with racks and spines.
type plant struct{ *testutil.Scenario }

// newPlant has nodes with so many GPUs each, in order of racks: nodes 0 and 1 are rack 0, which is under spine 0 with rack 1.
func newPlant(name string, gpus ...int64) plant {
	GinkgoHelper()
	p := plant{shared.World.NewScenario(GinkgoT(), name, gpus...)}
	for rack := range len(gpus) / 2 {
		p.Create(testutil.NewHyperNode(p.rack(rack), 1, topologyv1alpha1.MemberTypeNode, p.Node(2*rack), p.Node(2*rack+1)))
	}
	for spine := range len(gpus) / 4 {
		p.Create(testutil.NewHyperNode(fmt.Sprintf("%s-spine-%d", p.Namespace, spine), 2, topologyv1alpha1.MemberTypeHyperNode,
			p.rack(2*spine), p.rack(2*spine+1)))
	}
	return p
}

func (p plant) rack(i int) string { return fmt.Sprintf("%s-rack-%d", p.Namespace, i) }

// trial is a job on nodes of random sizes.
type trial struct {
	plant
	gpus []int64
	tier int32 // 0 for mode Soft
	most int
}

func newTrial(random *rand.Rand, n int) *trial {
	GinkgoHelper()
	t := &trial{tier: random.Int32N(3), most: 4 + random.IntN(10)}
	for range 8 {
		t.gpus = append(t.gpus, 1+random.Int64N(4))
	}
	t.plant = newPlant(fmt.Sprintf("trial-%d", n), t.gpus...)
	nearby := soft
	if t.tier > 0 {
		nearby = hard(t.tier)
	}
	t.Submit(t.Job("a").Range(2, int32(t.most)).With(nearby))
	return t
}

// room is how many GPUs the nodes from..to-1 have.
func (t *trial) room(from, to int) (n int) {
	for _, gpus := range t.gpus[from:to] {
		n += int(gpus)
	}
	return n
}

// check expects the core in one rack, and each other worker where the nearest room was. It counts the surplus.
func (t *trial) check(in map[string]int) {
	GinkgoHelper()
	Eventually(t.Workers("a", testutil.Bound)).Should(ContainElements(0, 1), "%s: the core is placed", t.Namespace)
	core := t.racksOf("a", 0, 2)
	Expect(core).To(HaveLen(1), "%s: each rack has two GPUs, so the core is in one", t.Namespace)
	rack, spine := core[0], core[0]/2
	near, far, whole := t.room(2*rack, 2*rack+2), t.room(4*spine, 4*spine+4), t.room(0, 8)
	want := min(t.most, map[int32]int{0: whole, 1: near, 2: far}[t.tier])
	Eventually(t.Fetch("a")).Should(testutil.Train(want), "%s: it has all that it may have", t.Namespace)
	var inRack, inSpine int
	for i := range want {
		switch at := t.racksOf("a", i, i+1)[0]; {
		case at == rack:
			inRack++
		case at/2 == spine:
			inSpine++
		}
	}
	Expect(inRack).To(Equal(min(want, near)), "%s: the rack comes first", t.Namespace)
	Expect(inRack+inSpine).To(Equal(min(want, far)), "%s: then what is under the same spine", t.Namespace)
	in["rack"] += inRack - 2
	in["spine"] += inSpine
	in["else"] += want - inRack - inSpine
}

// racksOf are the racks of the workers from..to-1 of a job, each once, in order.
func (p plant) racksOf(job string, from, to int) []int {
	GinkgoHelper()
	var all []int
	for i := from; i < to; i++ {
		node := p.Worker(job, i).Spec.NodeName
		for rack := range racks {
			if slices.Contains([]string{p.Node(2 * rack), p.Node(2*rack + 1)}, node) {
				all = append(all, rack)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// hard binds a job to one HyperNode of a tier or lower.
func hard(tier int32) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) {
		job.Spec.NetworkTopology = &v1beta1.NetworkTopology{Mode: v1beta1.TopologyHard, HighestTierAllowed: ptr.To(tier)}
	}
}

func soft(job *v1beta1.ElasticTrainingJob) {
	job.Spec.NetworkTopology = &v1beta1.NetworkTopology{Mode: v1beta1.TopologySoft}
}

var _ = Describe("Workers close to each other", func() {
	It("are placed in one rack, and wait while none has room, although the cluster has", func() {
		p := newPlant("hard", 3, 3, 3, 3, 3, 3, 3, 3)
		p.Submit(p.Job("a").Range(4, 4).With(hard(1)))
		Eventually(p.Fetch("a")).Should(testutil.Train(4), "A trains")
		Expect(p.racksOf("a", 0, 4)).To(HaveLen(1), "in one rack")
		core := testutil.Get(p.Scenario, &schedulingv1beta1.PodGroup{}, "a")
		Expect(core.Spec.NetworkTopology).To(HaveValue(And(HaveField("Mode", schedulingv1beta1.HardNetworkTopologyMode),
			HaveField("HighestTierAllowed", HaveValue(Equal(1))))))

		p.Submit(p.Job("b").Range(7, 7).With(hard(1)))
		Eventually(p.Fetch("b")).Should(HaveField("Status.Message", And(
			ContainSubstring("At most 6 such workers would fit in HyperNode "+p.Namespace+"-rack-"),
			ContainSubstring("the best of tier 1 or lower into 6 nvidia.com/gpu; short of 1 nvidia.com/gpu."))), "B says why it waits")
		Consistently(p.Workers("b", testutil.Bound)).WithTimeout(several).Should(BeEmpty(), "20 places are free, in no rack seven")

		p.Submit(p.Job("c").Range(12, 12).With(hard(2)))
		Eventually(p.Fetch("c")).Should(testutil.Train(12), "C trains")
		Expect(p.racksOf("c", 0, 12)).To(Or(Equal([]int{0, 1}), Equal([]int{2, 3})), "under one spine")
	})

	DescribeTable("grow where the nearest room is, and in mode Hard no further", func(trials int) {
		const atOnce = 12
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), uint64(trials)))
		in := map[string]int{}
		for first := 0; first < trials; first += atOnce {
			var some []*trial
			for n := range min(atOnce, trials-first) {
				some = append(some, newTrial(random, first+n))
			}
			for _, t := range some {
				t.check(in)
			}
		}
		AddReportEntry(fmt.Sprintf("figures: of the surplus of %d jobs on nodes of random sizes, %d of %d workers are in the core's "+
			"rack, %d under its spine, %d elsewhere", trials, in["rack"], in["rack"]+in["spine"]+in["else"], in["spine"], in["else"]))
	}, Entry("twelve trials", 12), Entry("sixty trials", suite.Long, 60))

	It("have room made for them, although Volcano's preempt leaves them out", func() {
		p := newPlant("room", 1, 1, 1, 1, 2, 2, 2, 2)
		p.Submit(p.Job("a").Range(1, 12))
		Eventually(p.Fetch("a")).Should(testutil.Train(12), "A has all places")
		p.Submit(p.Job("b").Range(3, 3).Starvation(time.Second).With(hard(1)))
		Eventually(p.Fetch("b")).Should(testutil.Train(3), "B trains")
		Expect(p.racksOf("b", 0, 3)).To(HaveLen(1), "in one rack")
		Expect(meta.IsStatusConditionTrue(p.Read("a").Status.Conditions, v1beta1.ConditionFailed)).To(BeFalse())
		Expect(p.Read("a").Status.Restarts).To(BeZero(), "giving way is no restart")
	})
})

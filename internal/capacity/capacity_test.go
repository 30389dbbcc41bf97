package capacity

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

var born = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func nodeOf(name string, gpus int64) Node {
	return Node{Name: name, Allocatable: Amounts{gpu: gpus, corev1.ResourcePods: 110}}
}

func used(node string, gpus int64) Pod {
	return Pod{Node: node, Queue: "default", Requests: Amounts{gpu: gpus}}
}

func surplus(node, job string, index int32, gpus int64) Pod {
	p := used(node, gpus)
	p.Surplus = &Surplus{
		Job: types.NamespacedName{Name: job}, UID: types.UID(fmt.Sprintf("%s-%d", job, index)), Index: index, Tier: 1000,
		Created: born,
	}
	return p
}

func gangOf(workers int32, gpus int64) *Gang {
	return &Gang{Queue: "default", Workers: workers, Shape: Shape{Requests: Amounts{gpu: gpus}}}
}

func cluster(nodes []Node, pods ...Pod) *Model {
	return New(Snapshot{Nodes: nodes, Pods: pods, Queues: []Queue{{Name: "default"}}})
}

func anybody(types.NamespacedName) bool { return true }

func uids(victims []Surplus) []string {
	all := []string{}
	for _, v := range victims {
		all = append(all, string(v.UID))
	}
	return all
}

func TestFragmentedRoomDoesNotAddUp(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 8), nodeOf("b", 8), nodeOf("c", 8)}, used("a", 6), used("b", 6), used("c", 7))
	answer := m.Ask(gangOf(1, 4))
	g.Expect(answer.Fits).To(BeFalse())
	g.Expect(answer.Free).To(Equal(Amounts{gpu: 5}), "5 are free, as 2+2+1")
	g.Expect(answer.Largest).To(BeZero())
	g.Expect(answer.Short).To(BeEmpty(), "enough is free in all")
	answer = m.Ask(gangOf(3, 2))
	g.Expect(answer.Fits).To(BeFalse())
	g.Expect(answer.Largest).To(Equal(int32(2)))
	g.Expect(answer.Short).To(Equal(Amounts{gpu: 1}))
}

func TestFragmentation(t *testing.T) {
	m := cluster([]Node{nodeOf("a", 8), nodeOf("b", 8), nodeOf("c", 8)}, used("a", 6), used("b", 6), used("c", 7))
	drawn := func(workers int32, gpus int64, weight float64) Drawn {
		return Drawn{Gang: *gangOf(workers, gpus), Weight: weight}
	}
	unmodelled := drawn(1, 1, 1)
	unmodelled.Shape.Unmodelled = "volumes"
	for name, c := range map[string]struct {
		mix      []Drawn
		unusable float64
	}{
		"workers of one GPU fit everywhere":   {[]Drawn{drawn(2, 1, 1)}, 0},
		"workers of two cannot use the fifth": {[]Drawn{drawn(2, 2, 1)}, 0.2},
		"a gang of three does not fit at all": {[]Drawn{drawn(3, 2, 1)}, 1},
		"the mean by weight":                  {[]Drawn{drawn(2, 1, 3), drawn(1, 4, 1)}, 0.25},
		"what the model does not cover":       {[]Drawn{drawn(2, 2, 1), unmodelled}, 0.2},
		"an empty mix":                        {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := m.MeasureFragmentation(gpu, c.mix)
			g.Expect(f.Free).To(Equal(5.0))
			g.Expect(f.Unusable).To(BeNumerically("~", c.unusable, 1e-9))
		})
	}
	NewWithT(t).Expect(m.MeasureFragmentation("example.com/fpga", nil)).To(BeZero())
	full := cluster([]Node{nodeOf("a", 8)}, used("a", 8))
	NewWithT(t).Expect(full.MeasureFragmentation(gpu, []Drawn{drawn(2, 2, 3)})).To(Equal(Fragmentation{Weight: 3}))
}

func TestRoomOfSeveralResources(t *testing.T) {
	const npu = "example.com/npu"
	a, b := nodeOf("a", 8), nodeOf("b", 8)
	b.Allocatable[npu] = 10
	m := cluster([]Node{a, b}, used("a", 3), used("b", 6))
	g := NewWithT(t)
	mix := []Drawn{{Gang: *gangOf(1, 2), Weight: 2}}
	resources := []corev1.ResourceName{gpu, npu}
	one := m.FragmentationOf(resources, mix)
	g.Expect(one).To(And(HaveField("Free", 17.0), HaveField("Weight", 2.0)))
	g.Expect(one.Unusable).To(BeNumerically("~", 1.0/7, 1e-9), "nobody asks for the others")
	of := *gangOf(1, 0)
	of.Shape.Requests[npu] = 4
	mix = append(mix, Drawn{Gang: of, Weight: 1})
	both := m.FragmentationOf(resources, mix)
	g.Expect(both.Weight).To(Equal(3.0))
	g.Expect(both.Unusable).To(BeNumerically("~", 3.0/17, 1e-9), "one of 7, and two of 10")
	g.Expect(m.FragmentationOf(resources, nil)).To(Equal(Fragmentation{Free: 17}))
}

func TestPlacementRules(t *testing.T) {
	labelled := nodeOf("a", 8)
	labelled.Labels = map[string]string{"gpu": "a100", "zone": "1"}
	tainted := nodeOf("b", 8)
	tainted.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	m := cluster([]Node{labelled, tainted})
	in := func(values ...string) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: values},
		}}}}
	}
	for name, c := range map[string]struct {
		edit    func(*Shape)
		largest int32
	}{
		"plain":      {func(*Shape) {}, 8},
		"selector":   {func(s *Shape) { s.NodeSelector = map[string]string{"gpu": "a100"} }, 8},
		"no node":    {func(s *Shape) { s.NodeSelector = map[string]string{"gpu": "h100"} }, 0},
		"affinity":   {func(s *Shape) { s.Affinity = in("1", "2") }, 8},
		"other zone": {func(s *Shape) { s.Affinity = in("3") }, 0},
		"tolerated": {func(s *Shape) {
			s.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
		}, 16},
		"unknown resource": {func(s *Shape) { s.Requests["example.com/fpga"] = 1 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ask := gangOf(1, 1)
			c.edit(&ask.Shape)
			NewWithT(t).Expect(m.Ask(ask).Largest).To(Equal(c.largest))
		})
	}
}

func TestPodCountLimitsANode(t *testing.T) {
	n := nodeOf("a", 8)
	n.Allocatable[corev1.ResourcePods] = 3
	NewWithT(t).Expect(cluster([]Node{n}, used("a", 1)).Ask(gangOf(1, 1)).Largest).To(Equal(int32(2)))
}

func TestQueueLimits(t *testing.T) {
	g := NewWithT(t)
	m := New(Snapshot{Nodes: []Node{nodeOf("a", 8)}, Queues: []Queue{
		{Name: "default", Capability: Amounts{gpu: 4}, Allocated: Amounts{gpu: 1}},
		{Name: "other", Guarantee: Amounts{gpu: 6}},
	}})
	answer := m.Ask(gangOf(4, 1))
	g.Expect(answer.Largest).To(Equal(int32(1)), "8 less 6 guaranteed to the other, less 1 in use")
	g.Expect(answer.QueueLimit).To(BeTrue())
	g.Expect(answer.Short).To(Equal(Amounts{gpu: 3}))
	g.Expect(answer.Fits).To(BeFalse())
	g.Expect(m.FindVictims(gangOf(4, 1), anybody)).To(BeEmpty())
	g.Expect(m.Ask(&Gang{Queue: "nowhere", Workers: 1}).Fits).To(BeFalse())
}

func TestUnmodelledIsUnknown(t *testing.T) {
	ask := gangOf(1, 1)
	ask.Shape.Unmodelled = "volumes"
	NewWithT(t).Expect(cluster([]Node{nodeOf("a", 8)}).Ask(ask)).To(Equal(Answer{Unknown: "volumes"}))
}

func TestVictimsInOrder(t *testing.T) {
	g := NewWithT(t)
	lower, younger := surplus("a", "lower", 2, 1), surplus("a", "younger", 2, 1)
	lower.Surplus.Tier = 100
	younger.Surplus.Created = born.Add(time.Hour)
	m := cluster([]Node{nodeOf("a", 6)}, surplus("a", "old", 3, 1), surplus("a", "old", 2, 1), used("a", 2), younger, lower)
	g.Expect(uids(m.FindVictims(gangOf(1, 1), anybody))).To(Equal([]string{"lower-2"}))
	g.Expect(uids(m.FindVictims(gangOf(2, 1), anybody))).To(Equal([]string{"lower-2", "younger-2"}))
	g.Expect(uids(m.FindVictims(gangOf(3, 1), anybody))).To(Equal([]string{"lower-2", "younger-2", "old-3"}))
	g.Expect(m.FindVictims(gangOf(5, 1), anybody)).To(BeEmpty(), "all surplus together is not enough, so nobody leaves")
}

func TestWhoLosesTheLeastWorkGoesFirst(t *testing.T) {
	g := NewWithT(t)
	lower, young, saved := surplus("a", "lower", 2, 1), surplus("a", "young", 2, 1), surplus("a", "saved", 2, 1)
	lower.Surplus.Tier, lower.Surplus.WorkAtStake = 100, 9000
	young.Surplus.Created, young.Surplus.WorkAtStake = born.Add(time.Hour), 500
	saved.Surplus.WorkAtStake = 20
	old := surplus("a", "old", 2, 1)
	old.Surplus.WorkAtStake = 500
	m := func() *Model { return cluster([]Node{nodeOf("a", 4)}, old, young, saved, lower) }
	g.Expect(uids(m().FindVictims(gangOf(4, 1), anybody))).To(Equal([]string{"lower-2", "saved-2", "young-2", "old-2"}))
	g.Expect(uids(m().FindVictims(gangOf(2, 1), anybody))).To(Equal([]string{"lower-2", "saved-2"}))
	old.Surplus.Asked = true
	g.Expect(uids(m().FindVictims(gangOf(2, 1), anybody))).To(Equal([]string{"lower-2", "old-2"}), "it is about to leave already")
}

func TestFewerVictimsBeatEarlierOnes(t *testing.T) {
	m := cluster([]Node{nodeOf("a", 8), nodeOf("b", 8)},
		surplus("a", "small", 9, 1), surplus("a", "small", 8, 1), surplus("a", "small", 7, 1), surplus("a", "small", 6, 1),
		used("a", 4),
		surplus("b", "large", 2, 4), used("b", 4))
	NewWithT(t).Expect(uids(m.FindVictims(gangOf(1, 4), anybody))).To(Equal([]string{"large-2"}))
}

func TestSurplusOfAnotherQueue(t *testing.T) {
	claimant, holder := Queue{Name: "default", Deserved: Amounts{gpu: 2}}, Queue{Name: "other", Allocated: Amounts{gpu: 4}}
	for name, c := range map[string]struct {
		edit    func()
		victims int
	}{
		"above its share":                  {func() { holder.Deserved = Amounts{gpu: 2} }, 1},
		"at its share":                     {func() { holder.Deserved = Amounts{gpu: 4} }, 0},
		"without any share":                {func() { holder.Deserved = nil }, 1},
		"above its share, not reclaimable": {func() { holder.Deserved, holder.Protected = Amounts{gpu: 2}, true }, 0},
		"for a queue without share":        {func() { holder.Protected, claimant.Deserved = false, nil }, 0},
		"for a queue beyond its share": {func() {
			claimant.Deserved, claimant.Allocated = Amounts{gpu: 2}, Amounts{gpu: 2}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			claimant, holder = Queue{Name: "default", Deserved: Amounts{gpu: 2}}, Queue{
				Name: "other", Deserved: Amounts{gpu: 2}, Allocated: Amounts{gpu: 4},
			}
			c.edit()
			pods := []Pod{surplus("a", "other", 2, 1), used("a", 3)}
			pods[0].Queue = "other"
			m := New(Snapshot{Nodes: []Node{nodeOf("a", 4)}, Pods: pods, Queues: []Queue{claimant, holder}})
			NewWithT(t).Expect(m.FindVictims(gangOf(1, 1), anybody)).To(HaveLen(c.victims))
		})
	}
}

func TestAnotherQueueKeepsItsShare(t *testing.T) {
	pods := []Pod{surplus("a", "other", 3, 1), surplus("a", "other", 2, 1), used("a", 6)}
	for i := range pods {
		pods[i].Queue = "other"
	}
	m := New(Snapshot{Nodes: []Node{nodeOf("a", 8)}, Pods: pods, Queues: []Queue{
		{Name: "default", Deserved: Amounts{gpu: 8}}, {Name: "other", Deserved: Amounts{gpu: 7}, Allocated: Amounts{gpu: 8}},
	}})
	g := NewWithT(t)
	g.Expect(m.FindVictims(gangOf(1, 1), anybody)).To(HaveLen(1))
	g.Expect(m.FindVictims(gangOf(2, 1), anybody)).To(BeEmpty(), "one is all that the other queue has beyond its share")
}

func TestQueueWithoutShareGivesAllItsSurplus(t *testing.T) {
	for name, deserved := range map[string]Amounts{"none": nil, "of another resource": {corev1.ResourceCPU: 1000}} {
		t.Run(name, func(t *testing.T) {
			pods := []Pod{surplus("a", "other", 3, 1), surplus("a", "other", 2, 1), used("a", 2)}
			for i := range pods {
				pods[i].Queue = "other"
				pods[i].Requests[corev1.ResourceCPU] = 1000
			}
			node := nodeOf("a", 4)
			node.Allocatable[corev1.ResourceCPU] = 9000
			m := New(Snapshot{Nodes: []Node{node}, Pods: pods, Queues: []Queue{
				{Name: "default", Deserved: Amounts{gpu: 4}},
				{Name: "other", Deserved: deserved, Allocated: Amounts{gpu: 4, corev1.ResourceCPU: 4000}},
			}})
			ask := gangOf(2, 1)
			ask.Shape.Requests[corev1.ResourceCPU] = 1000
			NewWithT(t).Expect(m.FindVictims(ask, anybody)).To(HaveLen(2))
		})
	}
}

func TestVictimsWithinTheLimitOfTheQueue(t *testing.T) {
	for name, c := range map[string]struct {
		free    int64
		victims []string
	}{
		"full nodes": {0, []string{"x-3", "x-2"}},
		"free nodes, so the limit alone is short": {8, []string{"x-3", "x-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			other := surplus("a", "other", 9, 1)
			other.Queue = "other"
			other.Surplus.Tier = 0
			pods := []Pod{used("a", 2), surplus("a", "x", 3, 1), surplus("a", "x", 2, 1), other, other}
			m := func(capability int64) *Model {
				return New(Snapshot{Nodes: []Node{nodeOf("a", 6+c.free)}, Pods: pods, Queues: []Queue{
					{Name: "default", Deserved: Amounts{gpu: 8}, Capability: Amounts{gpu: capability}, Allocated: Amounts{gpu: 4}},
					{Name: "other"},
				}})
			}
			g := NewWithT(t)
			g.Expect(uids(m(4).FindVictims(gangOf(2, 1), anybody))).To(Equal(c.victims), "room on nodes would not help it")
			g.Expect(m(3).FindVictims(gangOf(2, 1), anybody)).To(BeEmpty(), "nobody leaves in vain")
		})
	}
}

// TestVictimsAreMinimal compares with every subset of the surplus, in random clusters with up to 12 surplus pods. The victims
// must be as few as can be, make the gang fit, and among sets of that size come first in the order of victims.
func TestVictimsAreMinimal(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	decided, most := 0, int64(0)
	// Few clusters need four victims: where none of the first 104 does, more are tried.
	for n := 0; n < 104 || most < 4 && n < 1040; n++ {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		nodes, pods := randomCluster(random, n%13)
		ask := gangOf(1+random.Int32N(5), 1+random.Int64N(4))
		victims, want := cluster(nodes, pods...).FindVictims(ask, anybody), bruteForce(nodes, pods, ask)
		gone := map[types.UID]bool{}
		for _, v := range victims {
			gone[v.UID] = true
		}
		if got, fits := without(nodes, pods, ask, gone); got != want || (len(gone) > 0 && !fits) {
			t.Fatalf("seed %d, cluster %d: victims %v cost %v (fits %t), brute force says %v: %v asks %+v",
				seed, n, uids(victims), got, fits, want, pods, ask)
		}
		if want.count > 0 {
			decided, most = decided+1, max(most, want.count)
		}
	}
	if decided < 20 || most < 4 {
		t.Errorf("seed %d: only %d clusters had victims, at most %d: the test proves little", seed, decided, most)
	}
}

// randomCluster has that many surplus pods, on nodes of eight GPUs and beside others.
func randomCluster(random *rand.Rand, surplusPods int) (nodes []Node, pods []Pod) {
	for i := 0; surplusPods > 0 || i < 2; i++ {
		name := fmt.Sprintf("n%d", i)
		nodes = append(nodes, nodeOf(name, 8))
		for free := int64(8); free > 0 && random.IntN(8) > 0; {
			gpus := min(free, 1+random.Int64N(4))
			free -= gpus
			if surplusPods > 0 && random.IntN(4) > 0 {
				surplusPods--
				p := surplus(name, fmt.Sprintf("j%d", random.IntN(3)), int32(len(pods)), gpus)
				p.Surplus.Tier, p.Surplus.WorkAtStake = 100*random.Int32N(3), random.Int64N(3)
				pods = append(pods, p)
			} else {
				pods = append(pods, used(name, gpus))
			}
		}
	}
	return nodes, pods
}

// bruteForce tries every subset of the surplus, and returns the cost of the cheapest that makes the gang fit; zero when it fits
// already and when no subset does.
func bruteForce(nodes []Node, pods []Pod, ask *Gang) cost {
	var takeable []types.UID
	for _, p := range pods {
		if p.Surplus != nil {
			takeable = append(takeable, p.Surplus.UID)
		}
	}
	best := tooMuch
	for subset := range 1 << len(takeable) {
		gone := map[types.UID]bool{}
		for bit, uid := range takeable {
			if subset&(1<<bit) != 0 {
				gone[uid] = true
			}
		}
		if c, fits := without(nodes, pods, ask, gone); fits && c.less(best) {
			best = c
		}
	}
	if best == tooMuch {
		return cost{}
	}
	return best
}

// without tells whether the gang fits once some surplus is gone, and what that costs.
func without(nodes []Node, pods []Pod, ask *Gang, gone map[types.UID]bool) (c cost, fits bool) {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b Pod) int {
		if a.Surplus == nil || b.Surplus == nil {
			return cmp.Compare(order(a.Surplus == nil), order(b.Surplus == nil))
		}
		return a.Surplus.compare(b.Surplus)
	})
	var left []Pod
	for i, p := range pods {
		if p.Surplus != nil && gone[p.Surplus.UID] {
			c = c.plus(cost{1, int64(i)})
		} else {
			left = append(left, p)
		}
	}
	return c, cluster(nodes, left...).Ask(ask).Largest >= ask.Workers
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

func TestOrder(t *testing.T) {
	g := NewWithT(t)
	old, high, young := gangOf(1, 1), gangOf(1, 1), gangOf(1, 1)
	old.Created, young.Created, high.Created = born, born.Add(time.Hour), born.Add(2*time.Hour)
	high.Tier = 10
	gangs := []*Gang{young, high, old}
	SortGangs(gangs)
	g.Expect(gangs).To(HaveExactElements(BeIdenticalTo(high), BeIdenticalTo(old), BeIdenticalTo(young)))
}

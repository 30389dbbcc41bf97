package capacity

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity/devices"
)

// withMaster is a gang whose worker 0 asks for other GPUs than the others.
func withMaster(workers int32, master, each int64) *Gang {
	g := gangOf(workers, each)
	g.Apart = []Shape{{Requests: Amounts{gpu: master}}}
	return g
}

func TestMasterOfAnotherShapeHasItsPlaceToo(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 8), nodeOf("b", 8)}, used("a", 2))
	g.Expect(m.fitsNow(withMaster(3, 6, 4))).To(BeTrue(), "worker 0 where 6 are free, two of 4 on the other node")
	g.Expect(m.largest(withMaster(3, 6, 4))).To(Equal(int32(3)))
	g.Expect(m.Ask(withMaster(3, 6, 4)).Unknown).To(Equal(InTurn), "it may go to the other node")
	g.Expect(m.Ask(withMaster(2, 6, 4)).Fits).To(BeTrue(), "wherever it goes")
	short := m.Ask(withMaster(4, 6, 4))
	g.Expect(short.Fits).To(BeFalse())
	g.Expect(short.Largest).To(Equal(int32(3)))
	g.Expect(short.Short).To(Equal(Amounts{gpu: 6 + 3*4 - 14}))
	none := m.Ask(withMaster(2, 9, 1))
	g.Expect(none.Largest).To(BeZero(), "without worker 0 there is no gang")
}

func TestMasterOnNodesOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	other := Node{
		Name: "cpu", Labels: map[string]string{"pool": "cpu"}, Allocatable: Amounts{corev1.ResourceCPU: 8000, corev1.ResourcePods: 9},
	}
	gang := withMaster(3, 0, 4)
	gang.Apart = []Shape{{Requests: Amounts{corev1.ResourceCPU: 4000}, NodeSelector: other.Labels}}
	m := cluster([]Node{nodeOf("a", 8), other})
	g.Expect(m.Ask(gang).Fits).To(BeTrue())
	g.Expect(m.Ask(gang).Free).To(Equal(Amounts{gpu: 8, corev1.ResourceCPU: 8000}))
	rest := m.clone()
	rest.placeWorkers(gang, 3, rest.freeView())
	g.Expect(rest.Ask(gangOf(1, 1)).Fits).To(BeFalse(), "two workers fill the node")
	gang.Apart[0].Unmodelled = "host ports"
	g.Expect(m.Ask(gang).Unknown).To(Equal("host ports"))
}

func TestQueueLimitCountsTheMaster(t *testing.T) {
	g := NewWithT(t)
	m := New(Snapshot{
		Nodes:  []Node{nodeOf("a", 8), nodeOf("b", 8)},
		Queues: []Queue{{Name: "default", Capability: Amounts{gpu: 9}}},
	})
	answer := m.Ask(withMaster(4, 6, 2))
	g.Expect(answer.QueueLimit).To(BeTrue())
	g.Expect(answer.Largest).To(Equal(int32(2)), "6 and 2 of 9")
	g.Expect(answer.Short).To(Equal(Amounts{gpu: 6 + 3*2 - 9}))
}

func TestWaitingMasterKeepsItsNodesFree(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 8), nodeOf("b", 4)}, used("a", 4))
	waiting := withMaster(2, 8, 4)
	waiting.Job = job("waits")
	grower := Grower{Gang: *named("grows", 4, 0), Placed: 1}
	limits, _ := m.LimitGrowth([]Grower{grower}, []*Gang{waiting})
	g.Expect(limits).To(HaveKeyWithValue(job("grows"), int32(1)), "all nodes could serve it")
	never := withMaster(2, 9, 4)
	never.Job = job("never")
	g.Expect(m.LimitGrowth([]Grower{grower}, []*Gang{never})).To(HaveKeyWithValue(job("grows"), int32(5)), "no node could")
}

func TestVictimsForTheMasterAndThenTheOthers(t *testing.T) {
	g := NewWithT(t)
	nodes := []Node{nodeOf("a", 8), nodeOf("b", 8)}
	pods := []Pod{used("a", 4), surplus("a", "x", 5, 2), surplus("a", "x", 4, 2), used("b", 6), surplus("b", "x", 3, 2)}
	m := cluster(nodes, pods...)
	g.Expect(uids(m.FindVictims(withMaster(2, 4, 2), anybody))).To(Equal([]string{"x-5", "x-4", "x-3"}))
	g.Expect(m.FindVictims(withMaster(2, 5, 2), anybody)).To(BeEmpty(), "worker 0 finds no room whoever leaves")
	g.Expect(m.FindVictims(withMaster(3, 4, 2), anybody)).To(BeEmpty(), "a third worker finds none")
	g.Expect(m.Ask(withMaster(1, 4, 2)).Fits).To(BeFalse(), "and the model is as it was")
}

// A queue at its limit makes surplus leave for the master already. Its place, where that surplus was, must not keep the others
// out.
func TestPlaceOfTheMasterKeepsNoWorkerOut(t *testing.T) {
	g := NewWithT(t)
	pods := []Pod{surplus("d", "x", 2, 1)}
	for i := range int32(4) {
		pods = append(pods, surplus("a", "x", 3+i, 1))
	}
	for i := range pods {
		pods[i].Queue = "default"
	}
	m := New(Snapshot{Nodes: []Node{nodeOf("a", 4), nodeOf("b", 1), nodeOf("d", 1)}, Pods: pods, Queues: []Queue{
		{Name: "default", Capability: Amounts{gpu: 5}, Allocated: Amounts{gpu: 5}},
	}})
	g.Expect(m.FindVictims(withMaster(3, 1, 2), anybody)).To(HaveLen(5), "one on b or d, two of 2 on a")
	g.Expect(m.FindVictims(withMaster(4, 1, 2), anybody)).To(BeEmpty(), "7 GPUs in a queue of 5")
}

func TestShareOfAQueueCountsTheMasterAndTheOthers(t *testing.T) {
	g := NewWithT(t)
	pods := []Pod{surplus("a", "other", 5, 4), surplus("a", "other", 4, 1), surplus("a", "other", 3, 1)}
	for i := range pods {
		pods[i].Queue = "other"
	}
	victims := func(deserved int64) []Surplus {
		return New(Snapshot{Nodes: []Node{nodeOf("a", 6)}, Pods: pods, Queues: []Queue{
			{Name: "default", Deserved: Amounts{gpu: deserved}}, {Name: "other", Allocated: Amounts{gpu: 6}},
		}}).FindVictims(withMaster(3, 4, 1), anybody)
	}
	g.Expect(victims(6)).To(HaveLen(3))
	g.Expect(victims(5)).To(BeEmpty(), "the whole gang is more than its queue's share, its parts by themselves are not")
}

// Whatever leaves makes the gang fit, and what fits is what some placement of worker 0 shows.
func TestMasterAgainstEveryPlacement(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	served := 0
	for range 300 {
		nodes, pods := randomCluster(random, 5)
		gang := withMaster(2+random.Int32N(4), 1+random.Int64N(8), 1+random.Int64N(4))
		m := cluster(nodes, pods...)
		var most int32
		for _, n := range nodes {
			beside := cluster(nodes, append([]Pod{used(n.Name, gang.Apart[0].Requests[gpu])}, pods...)...)
			if m.Ask(onNode(n, gang.Apart[0].Requests[gpu])).Fits {
				most = max(most, 1+beside.Ask(gangOf(1, gang.Shape.Requests[gpu])).Largest)
			}
		}
		if got := m.largest(gang); got != most {
			t.Fatalf("the model says %d, trying every node for worker 0 says %d: %+v %+v %+v", got, most, gang, nodes, pods)
		}
		victims := m.FindVictims(gang, anybody)
		if len(victims) == 0 {
			held := slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return p.Surplus != nil })
			if !m.fitsNow(gang) && cluster(nodes, held...).fitsNow(gang) {
				t.Fatalf("no surplus is chosen, and all of it would do: %+v %+v %+v", gang, nodes, pods)
			}
			continue
		}
		served++
		gone := map[types.UID]bool{}
		for _, v := range victims {
			gone[v.UID] = true
		}
		var left []Pod
		for _, p := range pods {
			if p.Surplus == nil || !gone[p.Surplus.UID] {
				left = append(left, p)
			}
		}
		if !cluster(nodes, left...).fitsNow(gang) {
			t.Fatalf("%v left and it does not fit: %+v", uids(victims), gang)
		}
	}
	if served < 20 {
		t.Errorf("only %d gangs found victims", served)
	}
}

// onNode is one worker that asks for GPUs of that node.
func onNode(n Node, gpus int64) *Gang {
	g := gangOf(1, gpus)
	g.Shape.Affinity = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{n.Name},
		}},
	}}}
	return g
}

func TestModelOnWhichAGangFits(t *testing.T) {
	g := NewWithT(t)
	of := func(name, model string, gpus int64) Node {
		n := nodeOf(name, gpus)
		n.Labels = map[string]string{"model": model}
		return n
	}
	on := func(model string) Shape {
		return Shape{Requests: Amounts{gpu: 1}, NodeSelector: map[string]string{"model": model}}
	}
	m := cluster([]Node{of("a", "A100", 2), of("b", "H100", 4), of("c", "B200", 4)})
	asking := func(name string, workers int32, now string) *Gang {
		ask := &Gang{Job: job(name), Queue: "default", Workers: workers, Shape: on(now), Model: now}
		for _, other := range []string{"A100", "H100", "B200"} {
			if other != now {
				ask.Others = append(ask.Others, Variant{Model: other, Shape: on(other)})
			}
		}
		return ask
	}
	chosen := func(workers int32, now string) string {
		verdicts, _, _ := m.Judge(docket(asking("x", workers, now)), born)
		return verdicts[job("x")].Model
	}
	g.Expect(chosen(2, "A100")).To(Equal("A100"), "it fits")
	g.Expect(chosen(3, "A100")).To(Equal("H100"), "the first listed on which it fits")
	g.Expect(chosen(2, "H100")).To(Equal("H100"), "it fits there too, and is about to be placed")
	g.Expect(chosen(5, "H100")).To(Equal("H100"), "it fits on none")

	line := []*Gang{asking("first", 4, "A100"), asking("second", 4, "A100"), asking("third", 4, "A100"), asking("last", 2, "A100")}
	for i, g := range line {
		g.Created = born.Add(time.Duration(i) * time.Second)
	}
	verdicts, _, _ := m.Judge(docket(line...), born)
	for name, model := range map[string]string{"first": "H100", "second": "B200", "third": "A100", "last": "A100"} {
		g.Expect(verdicts[job(name)].Model).To(Equal(model), "%s: room is given away once", name)
	}
	stopped := asking("stopped", 4, "A100")
	g.Expect(m.ChooseResumed([]*Gang{stopped}, line[:1])).To(HaveField("Model", "B200"), "where it fits beside who waits")
}

func TestOtherSharesOfGPUsAreUnknown(t *testing.T) {
	g := NewWithT(t)
	beyond := func(name corev1.ResourceName) string {
		asks := corev1.ResourceList{name: resource.MustParse("1")}
		spec := &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: asks}}}}
		return ShapeOf(&metav1.ObjectMeta{Namespace: "ads"}, spec, asks, nil).Unmodelled
	}
	g.Expect(beyond("volcano.sh/gpu-memory")).To(Equal(devices.OtherShares))
	g.Expect(beyond("volcano.sh/vgpu-memory")).To(BeEmpty(), "judged device by device")
	g.Expect(beyond("nvidia.com/gpu.shared")).To(BeEmpty(), "a node counts them")
}

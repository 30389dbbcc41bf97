package capacity

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func job(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ads", Name: name} }

func named(name string, workers int32, age time.Duration) *Gang {
	g := gangOf(workers, 1)
	g.Job, g.Created = job(name), born.Add(-age)
	return g
}

// inTime is how long gangs may take to be placed in these tests.
const inTime = time.Minute

// promised are the gangs that surplus or whole jobs leave for.
func promised(p Promises) []string {
	all := []string{}
	for _, one := range p.Standing {
		if one.wasMade() {
			all = append(all, one.For.Name)
		}
	}
	return all
}

// docket is that of queue default, in which every gang has starved and everybody yields.
func docket(waiting ...*Gang) Docket {
	return Docket{
		Queue: "default", Waiting: waiting, Yields: anybody, Leaves: anybody, PlacementTimeout: inTime,
		Starved: func(*Gang) (bool, time.Duration) { return true, 0 },
	}
}

func TestVerdictSaysPlaceAndFigures(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 4), nodeOf("b", 4), nodeOf("c", 1)}, used("a", 2), used("b", 2), surplus("a", "x", 2, 1))
	asks := func(name string, age time.Duration) *Gang {
		ask := named(name, 8, age)
		return ask
	}
	d := docket(asks("third", time.Hour), asks("first", 3*time.Hour), asks("second", 2*time.Hour))
	d.Starved = func(*Gang) (bool, time.Duration) { return false, time.Minute }
	verdicts, shrink, again := m.Judge(d, born)
	g.Expect(shrink).To(BeZero())
	g.Expect(again).To(Equal(time.Minute))
	v := verdicts[job("second")]
	g.Expect(v.Place).To(Equal(int32(2)))
	g.Expect(v.Waiting).To(Equal(int32(3)))
	g.Expect(v.Answer.Free).To(Equal(Amounts{gpu: 4}))
	g.Expect(v.Answer.Largest).To(Equal(int32(4)))
	g.Expect(v.Holders).To(Equal([]Holder{{Job: types.NamespacedName{Name: "x"}, Workers: 1}}))
}

func TestHoldersAreThoseOnNodesThatTakeTheGang(t *testing.T) {
	g := NewWithT(t)
	gold := nodeOf("a", 3)
	gold.Labels = map[string]string{"metal": "gold"}
	m := cluster([]Node{gold, nodeOf("b", 3)},
		surplus("a", "x", 2, 1), used("a", 2), surplus("b", "x", 3, 1), surplus("b", "y", 2, 2))
	asks := func(selector map[string]string) []Holder {
		ask := named("first", 3, time.Hour)
		ask.Shape.NodeSelector = selector
		verdicts, _, _ := m.Judge(docket(ask), born)
		return verdicts[ask.Job].Holders
	}
	x, y := types.NamespacedName{Name: "x"}, types.NamespacedName{Name: "y"}
	g.Expect(asks(nil)).To(Equal([]Holder{{x, 2}, {y, 1}}))
	g.Expect(asks(gold.Labels)).To(Equal([]Holder{{x, 1}}))
	g.Expect(asks(map[string]string{"metal": "silver"})).To(BeEmpty())
}

func TestHoldersHoldWhatTheGangLacks(t *testing.T) {
	g := NewWithT(t)
	onCPUs := func(node, job string) Pod {
		p := surplus(node, job, 1, 0)
		p.Requests = Amounts{corev1.ResourceCPU: 4000}
		return p
	}
	nodes := []Node{nodeOf("a", 8), nodeOf("b", 8), nodeOf("c", 8)}
	for i := range nodes {
		nodes[i].Allocatable[corev1.ResourceCPU] = 16000
	}
	pods := []Pod{
		used("a", 5), surplus("a", "x", 1, 3), onCPUs("a", "plain"), // GPUs are lacking on a, and CPUs are not
		used("b", 8), onCPUs("b", "plain"), // the GPUs of b are held by cores
		used("c", 7), surplus("c", "few", 1, 1), // without it there is no room for a worker either
	}
	holders := func(ask *Gang) []Holder {
		verdicts, _, _ := cluster(nodes, pods...).Judge(docket(ask), born)
		return verdicts[ask.Job].Holders
	}
	ask := named("first", 2, time.Hour)
	ask.Shape.Requests = Amounts{gpu: 2, corev1.ResourceCPU: 1000}
	x, plain := types.NamespacedName{Name: "x"}, types.NamespacedName{Name: "plain"}
	g.Expect(holders(ask)).To(Equal([]Holder{{x, 1}}))
	ask.Shape.Requests[corev1.ResourceCPU] = 14000
	g.Expect(holders(ask)).To(Equal([]Holder{{plain, 1}, {x, 1}}), "both are lacking on a")
	ask.Shape.Requests = Amounts{corev1.ResourceCPU: 14000}
	ask.Workers = 3
	g.Expect(holders(ask)).To(Equal([]Holder{{plain, 2}}))
}

func TestHoldersHoldWhatTheQueueLacks(t *testing.T) {
	g := NewWithT(t)
	cheap := surplus("a", "plain", 1, 0)
	cheap.Requests = Amounts{corev1.ResourceCPU: 4000}
	m := New(Snapshot{
		Nodes:  []Node{nodeOf("a", 8)},
		Pods:   []Pod{surplus("a", "x", 1, 2), cheap},
		Queues: []Queue{{Name: "default", Capability: Amounts{gpu: 3}, Allocated: Amounts{gpu: 2}}},
	})
	ask := named("first", 2, time.Hour)
	verdicts, _, _ := m.Judge(docket(ask), born)
	g.Expect(verdicts[ask.Job].Answer.QueueLimit).To(BeTrue())
	g.Expect(verdicts[ask.Job].Holders).To(Equal([]Holder{{types.NamespacedName{Name: "x"}, 1}}))
}

func TestOneShrinkAtATime(t *testing.T) {
	g := NewWithT(t)
	full := []Pod{used("a", 4), surplus("a", "x", 5, 1), surplus("a", "x", 4, 1), surplus("a", "x", 3, 1), surplus("a", "x", 2, 1)}
	nodes := []Node{nodeOf("a", 8)}
	first, second := named("first", 2, 2*time.Hour), named("second", 1, time.Hour)
	d := docket(first, second)

	verdicts, shrink, _ := cluster(nodes, full...).Judge(d, born)
	x := verdicts[types.NamespacedName{Name: "x"}]
	g.Expect(x.GiveUp).To(ConsistOf(types.UID("x-5"), types.UID("x-4")))
	g.Expect(x.To).To(Equal(job("first")))

	d.Promises = shrink
	verdicts, shrink, _ = cluster(nodes, full[:4]...).Judge(d, born.Add(time.Second))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(ConsistOf(types.UID("x-5"), types.UID("x-4")),
		"the same victims, and nobody for the second gang")

	d.Promises = shrink
	left := []Pod{used("a", 4), surplus("a", "x", 3, 1), surplus("a", "x", 2, 1)}
	verdicts, shrink, again := cluster(nodes, left...).Judge(d, born.Add(2*time.Second))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(BeEmpty())
	g.Expect(again).To(Equal(inTime))

	d.Promises, d.Waiting = shrink, []*Gang{second}
	placed := []Pod{used("a", 6), surplus("a", "x", 3, 1), surplus("a", "x", 2, 1)}
	verdicts, _, _ = cluster(nodes, placed...).Judge(d, born.Add(3*time.Second))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(Equal([]types.UID{"x-3"}),
		"the first is placed, so it is the second's turn")
}

func TestFutileShrinkIsNotRepeatedUntilSomethingChanges(t *testing.T) {
	g := NewWithT(t)
	nodes := []Node{nodeOf("a", 4)}
	full := []Pod{used("a", 2), surplus("a", "x", 3, 1), surplus("a", "x", 2, 1)}
	d := docket(named("first", 2, time.Hour))
	_, d.Promises, _ = cluster(nodes, full...).Judge(d, born)
	// The victims leave, the gang is not placed, and they come back.
	room := cluster(nodes, full[0])
	_, d.Promises, _ = room.Judge(d, born.Add(time.Second))
	_, d.Promises, _ = room.Judge(d, born.Add(time.Second+inTime))
	g.Expect(d.Promises.Standing).To(BeEmpty())
	g.Expect(d.Promises.Ended).To(HaveLen(1))
	back := cluster(nodes, full...)
	verdicts, _, again := back.Judge(d, born.Add(time.Hour))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(BeEmpty())
	g.Expect(again).To(BeZero())

	behind := d
	behind.Waiting = append(behind.Waiting, named("second", 1, time.Minute))
	_, shrinks, _ := back.Judge(behind, born.Add(time.Hour))
	g.Expect(promised(shrinks)).To(ConsistOf("second"), "others are served meanwhile")

	for name, changed := range map[string]*Model{
		"another node": cluster([]Node{nodeOf("a", 4), nodeOf("b", 1)}, append([]Pod{used("b", 1)}, full...)...),
		"another size": cluster([]Node{nodeOf("a", 5)}, append([]Pod{used("a", 1)}, full...)...),
	} {
		verdicts, _, _ = changed.Judge(d, born.Add(2*time.Hour))
		g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(HaveLen(2), name)
	}
}

func TestSurplusThatWaitsLeavesWithTheVictims(t *testing.T) {
	g := NewWithT(t)
	waits := func(job, queue string) Pod {
		p := surplus("", job, 9, 1)
		p.Queue = queue
		return p
	}
	s := Snapshot{
		Nodes: []Node{nodeOf("a", 2)}, Queues: []Queue{{Name: "default"}, {Name: "other"}},
		Pods:    []Pod{surplus("a", "x", 3, 1), surplus("a", "x", 2, 1)},
		Pending: []Pod{waits("x", "default"), waits("y", "default"), waits("kept", "default"), waits("z", "other")},
	}
	d := docket(named("first", 1, time.Hour))
	d.Yields = func(job types.NamespacedName) bool { return job.Name != "kept" }
	verdicts, shrinks, _ := New(s).Judge(d, born)
	leaves := func(job string) []types.UID { return verdicts[types.NamespacedName{Name: job}].GiveUp }
	g.Expect(leaves("x")).To(ConsistOf(types.UID("x-3"), types.UID("x-9")))
	g.Expect(leaves("y")).To(ConsistOf(types.UID("y-9")), "it would take the place of x-3 while the gang needs more than one")
	g.Expect(leaves("kept")).To(BeEmpty(), "it is left to Volcano")
	g.Expect(leaves("z")).To(BeEmpty(), "it is in another queue")

	s.Pods, d.Promises = s.Pods[1:], shrinks
	verdicts, d.Promises, _ = New(s).Judge(d, born.Add(time.Second))
	g.Expect(leaves("y")).NotTo(BeEmpty(), "also once the victims are gone, until the gang is placed")
	d.Waiting = nil
	verdicts, _, _ = New(s).Judge(d, born.Add(2*time.Second))
	g.Expect(leaves("y")).To(BeEmpty(), "the gang is placed")
}

func TestTwoQueuesDoNotTakeTheSameSurplus(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 2)}, surplus("a", "x", 3, 1), surplus("a", "x", 2, 1))
	_, first, _ := m.Judge(docket(named("first", 1, time.Hour)), born)
	_, second, _ := m.Judge(docket(named("second", 1, time.Hour)), born)
	g.Expect(first.Standing[0].Victims[0].UID).NotTo(Equal(second.Standing[0].Victims[0].UID))
}

func TestImpossibleGangFreezesNobody(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 4)}, used("a", 3), surplus("a", "x", 2, 1))
	verdicts, shrink, _ := m.Judge(docket(named("impossible", 100, 2*time.Hour), named("modest", 1, time.Hour)), born)
	g.Expect(promised(shrink)).To(ConsistOf("modest"))
	g.Expect(verdicts[job("impossible")].Place).To(Equal(int32(1)))
}

func TestNobodyLeavesWhoseSurplusIsVolcanos(t *testing.T) {
	d := docket(named("first", 1, time.Hour))
	d.Yields = func(types.NamespacedName) bool { return false }
	_, shrink, _ := cluster([]Node{nodeOf("a", 1)}, surplus("a", "x", 2, 1)).Judge(d, born)
	NewWithT(t).Expect(promised(shrink)).To(BeEmpty())
}

func TestShareGivesEachPartOfTheRoomOnce(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 9)}, used("a", 4))
	growers := func() []Grower {
		return []Grower{{Gang: *named("young", 6, time.Hour)}, {Gang: *named("old", 3, 2*time.Hour), Placed: 1}}
	}
	g.Expect(m.LimitGrowth(growers(), nil)).To(Equal(map[types.NamespacedName]int32{job("old"): 4, job("young"): 2}))
}

func TestGrowthIsInWholeSteps(t *testing.T) {
	for name, c := range map[string]struct {
		free           int64
		placed, misses int32
		old, young     int32
	}{
		"both steps of the first":                 {9, 0, 8, 8, 1},
		"one step, and what is left goes to next": {7, 0, 8, 4, 3},
		"too little for a step":                   {3, 0, 8, 0, 3},
		"the rest of a step":                      {3, 6, 2, 8, 1},
		"no rest of a step":                       {1, 6, 2, 4, 1},
		"more than it misses":                     {9, 4, 4, 8, 5},
		"nothing is missing":                      {2, 8, 0, 8, 2},
		"more than it should have":                {2, 9, -1, 8, 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := cluster([]Node{nodeOf("a", 20)}, used("a", 20-c.free))
			growers := []Grower{
				{Gang: *named("young", 9, time.Hour)}, {Gang: *named("old", c.misses, 2*time.Hour), Placed: c.placed, Step: 4},
			}
			NewWithT(t).Expect(m.LimitGrowth(growers, nil)).To(
				Equal(map[types.NamespacedName]int32{job("old"): c.old, job("young"): c.young}))
		})
	}
}

func TestGrowersThatTheModelDoesNotCover(t *testing.T) {
	g := NewWithT(t)
	grower := Grower{Gang: *named("x", 4, time.Hour)}
	g.Expect(grower.IsJudged()).To(BeTrue())
	grower.Shape.Unmodelled = "host ports"
	g.Expect(grower.IsJudged()).To(BeFalse())
	g.Expect(cluster([]Node{nodeOf("a", 8)}).LimitGrowth([]Grower{grower}, nil)).To(HaveKeyWithValue(job("x"), int32(0)))
}

func TestWhoMayGrowWhileOthersWait(t *testing.T) {
	gold, silver := nodeOf("a", 8), nodeOf("b", 8)
	gold.Labels, silver.Labels = map[string]string{"metal": "gold"}, map[string]string{"metal": "silver"}
	on := func(metal string, workers int32) *Gang {
		ask := named("waiting", workers, time.Hour)
		ask.Shape.NodeSelector = map[string]string{"metal": metal}
		return ask
	}
	unknown := on("gold", 8)
	unknown.Shape.Unmodelled = "volumes"
	for name, c := range map[string]struct {
		waiting *Gang
		limit   int32
	}{
		"one that fits takes its room":              {on("gold", 3), 1},
		"one that waits for room keeps its nodes":   {on("gold", 6), 0},
		"one on other nodes is in nobody's way":     {on("silver", 9), 4},
		"one that can never fit is in nobody's way": {on("gold", 9), 4},
		"one that the model does not cover":         {unknown, 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := cluster([]Node{gold, silver}, used("a", 4))
			grower := Grower{Gang: *on("gold", 6)}
			NewWithT(t).Expect(m.LimitGrowth([]Grower{grower}, []*Gang{c.waiting})).To(HaveKeyWithValue(grower.Job, c.limit))
		})
	}
}

func TestRoomOfAGangThatFitsIsNotCountedTwice(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 4)}, used("a", 1), surplus("a", "x", 2, 1))
	_, shrink, _ := m.Judge(docket(named("fits", 2, 2*time.Hour), named("behind", 1, time.Hour)), born)
	g.Expect(promised(shrink)).To(ConsistOf("behind"))
	g.Expect(findPromise(shrink.Standing, job("behind")).Victims).To(HaveLen(1))
}

func TestServedGangKnowsWhoMadeRoom(t *testing.T) {
	d := docket(named("first", 1, time.Hour))
	verdicts, _, _ := cluster([]Node{nodeOf("a", 1)}, surplus("a", "x", 2, 1)).Judge(d, born)
	NewWithT(t).Expect(verdicts[job("first")].From).To(Equal([]Holder{{Job: types.NamespacedName{Name: "x"}, Workers: 1}}))
}

// Judge reviews a docket and decides for it.
func (m *Model) Judge(d Docket, now time.Time) (map[types.NamespacedName]Verdict, Promises, time.Duration) {
	return m.ReviewClaims(d, now).Decide()
}

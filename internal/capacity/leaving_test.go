package capacity

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// leave has pods leave.
func leave(pods []Pod) {
	for i := range pods {
		pods[i].Leaving = true
	}
}

func leaves(p Pod) Pod {
	p.Leaving = true
	return p
}

func TestNobodyLeavesForAGangWhoseRoomIsOnItsWay(t *testing.T) {
	g := NewWithT(t)
	s := Snapshot{Nodes: []Node{nodeOf("a", 8)}, Queues: []Queue{{Name: "default"}}}
	runs(&s, "grown", "low", 4, time.Hour)
	s.Pods = append(s.Pods, used("a", 1), leaves(used("a", 2)))
	verdicts, shrinks, _ := New(s).Judge(docket(important(3)), born)
	g.Expect(promised(shrinks)).To(BeEmpty())
	g.Expect(verdicts).To(HaveLen(1), "nobody else is spoken of")
	v := verdicts[job("launch")]
	g.Expect(v.Answer.Fits).To(BeFalse())
	g.Expect(v.Answer.Largest).To(Equal(int32(1)))
	g.Expect(v.Answer.Short).To(Equal(Amounts{gpu: 2}))
	g.Expect(v.Answer.Leaving).To(Equal(Amounts{gpu: 2}))
	g.Expect(v.Holders).To(BeEmpty(), "nobody need give way")

	verdicts, shrinks, _ = New(s).Judge(docket(important(4)), born)
	g.Expect(shrinks.Standing[0].Victims).To(HaveLen(1), "one more than what is on its way")
	g.Expect(verdicts[job("launch")].Answer.Leaving).To(BeNil(), "it waits for more than that")
	verdicts, _, _ = New(s).Judge(docket(important(6)), born)
	g.Expect(verdicts[job("grown")].Preempt).NotTo(BeNil())
}

func TestRoomOnItsWayIsForTheFirstInLine(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 4)}, leaves(used("a", 2)), surplus("a", "x", 3, 1), surplus("a", "x", 2, 1))
	first, second := named("first", 2, 2*time.Hour), named("second", 1, time.Hour)
	_, shrinks, _ := m.Judge(docket(first, second), born)
	g.Expect(promised(shrinks)).To(ConsistOf("second"))
	g.Expect(uids(findPromise(shrinks.Standing, job("second")).Victims)).To(Equal([]string{"x-3"}))
}

func TestWhoFitsNowLeavesTheRoomOnItsWayToOthers(t *testing.T) {
	m := cluster([]Node{nodeOf("a", 4), nodeOf("b", 6)}, leaves(used("a", 4)), surplus("b", "x", 2, 4))
	small, large := named("small", 1, 2*time.Hour), named("large", 1, time.Hour)
	small.Shape.Requests, large.Shape.Requests = Amounts{gpu: 2}, Amounts{gpu: 4}
	_, shrinks, _ := m.Judge(docket(small, large), born)
	NewWithT(t).Expect(promised(shrinks)).To(BeEmpty(), "one takes the two that are free, the other the four that will be")
}

func TestSurplusThatLeavesIsNoVictim(t *testing.T) {
	g := NewWithT(t)
	nodes := []Node{nodeOf("a", 4)}
	going := surplus("a", "x", 3, 1)
	m := cluster(nodes, used("a", 2), leaves(going), surplus("a", "x", 2, 1))
	g.Expect(uids(m.FindVictims(gangOf(2, 1), anybody))).To(Equal([]string{"x-2"}))
	g.Expect(m.FindVictims(gangOf(1, 1), anybody)).To(BeEmpty())
	g.Expect(m.FindVictims(gangOf(3, 1), anybody)).To(BeEmpty())
	g.Expect(m.FindVictims(withMaster(2, 1, 1), anybody)).To(HaveLen(1))

	d := docket(named("first", 2, time.Hour))
	_, d.Promises, _ = cluster(nodes, used("a", 2), going, surplus("a", "x", 2, 1)).Judge(d, born)
	verdicts, _, _ := m.Judge(d, born.Add(time.Second))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(ConsistOf(types.UID("x-2"), types.UID("x-3")),
		"a victim holds its place until it is gone")
}

func TestShrinkIsNotFutileWhileRoomIsOnItsWay(t *testing.T) {
	g := NewWithT(t)
	nodes := []Node{nodeOf("a", 4)}
	slow := leaves(used("a", 1))
	d := docket(named("first", 2, time.Hour), named("second", 1, time.Minute))
	_, d.Promises, _ = cluster(nodes, used("a", 1), slow, surplus("a", "x", 3, 1), surplus("a", "x", 2, 1)).Judge(d, born)
	g.Expect(uids(findPromise(d.Promises.Standing, job("first")).Victims)).To(Equal([]string{"x-3"}))
	waits := cluster(nodes, used("a", 1), slow, surplus("a", "x", 2, 1))
	for after := range 5 {
		_, d.Promises, _ = waits.Judge(d, born.Add(time.Duration(after)*inTime))
		g.Expect(promised(d.Promises)).To(ConsistOf("first"), "it waits for the slow one")
		g.Expect(d.Promises.Ended).To(BeEmpty())
	}
	var again time.Duration
	_, d.Promises, again = cluster(nodes, used("a", 1), surplus("a", "x", 2, 1)).Judge(d, born.Add(time.Hour))
	g.Expect(again).To(Equal(inTime), "everybody has left")
}

func TestRoomOnItsWayInTheBooksOfAQueue(t *testing.T) {
	g := NewWithT(t)
	stopped := leaves(used("a", 2))
	judge := func(capability int64, pods ...Pod) (Verdict, *Promise) {
		queue := Queue{Name: "default", Capability: Amounts{gpu: capability}, Allocated: Amounts{}}
		for _, p := range pods {
			queue.Allocated[gpu] += p.Requests[gpu]
		}
		d := docket(named("first", 2, time.Hour))
		verdicts, shrinks, _ := New(Snapshot{Nodes: []Node{nodeOf("a", 9)}, Queues: []Queue{queue}, Pods: pods}).Judge(d, born)
		return verdicts[job("first")], findPromise(shrinks.Standing, job("first"))
	}
	v, shrink := judge(4, stopped, used("a", 1), surplus("a", "x", 2, 1))
	g.Expect(v.Answer.QueueLimit).To(BeTrue())
	g.Expect(v.Answer.Leaving).To(Equal(Amounts{gpu: 2}), "the limit holds it until they have gone")
	g.Expect(shrink).To(BeNil())
	_, shrink = judge(4, stopped, used("a", 2), surplus("a", "x", 2, 1))
	g.Expect(shrink.Victims).To(HaveLen(1), "with them gone one is still too many")
}

func TestSharesAreWhatRemainsOfThem(t *testing.T) {
	g := NewWithT(t)
	victims := func(first Pod) []Surplus {
		pods := []Pod{first, surplus("a", "other", 2, 1), used("a", 6)}
		for i := range pods {
			pods[i].Queue = "other"
		}
		return New(Snapshot{Nodes: []Node{nodeOf("a", 8)}, Pods: pods, Queues: []Queue{
			{Name: "default", Deserved: Amounts{gpu: 8}}, {Name: "other", Deserved: Amounts{gpu: 7}, Allocated: Amounts{gpu: 8}},
		}}).FindVictims(gangOf(1, 1), anybody)
	}
	g.Expect(victims(used("a", 1))).To(HaveLen(1))
	g.Expect(victims(leaves(used("a", 1)))).To(BeEmpty(), "it is enough")

	pods := []Pod{leaves(used("a", 1)), surplus("a", "other", 3, 1), surplus("a", "other", 2, 1), used("a", 5)}
	for i := range pods {
		pods[i].Queue = "other"
	}
	m := New(Snapshot{Nodes: []Node{nodeOf("a", 8)}, Pods: pods, Queues: []Queue{
		{Name: "default", Deserved: Amounts{gpu: 8}}, {Name: "other", Deserved: Amounts{gpu: 7}, Allocated: Amounts{gpu: 8}},
	}})
	g.Expect(m.FindVictims(gangOf(2, 1), anybody)).To(BeEmpty(), "the other queue is at its share once that one has gone")
}

func TestRoomOnItsWayIsNotThereYet(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{nodeOf("a", 6)}, used("a", 2), leaves(used("a", 2)))
	growers := []Grower{{Gang: *named("grows", 4, 0)}}
	g.Expect(m.LimitGrowth(growers, nil)).To(HaveKeyWithValue(job("grows"), int32(2)), "surplus is created for what is free")
	stopped := named("stopped", 4, time.Hour)
	g.Expect(m.ChooseResumed([]*Gang{stopped}, nil)).To(Equal(stopped), "a gang that goes on can wait for it")
	g.Expect(m.ChooseResumed([]*Gang{named("stopped", 5, time.Hour)}, nil)).To(BeNil())
}

// TestWhoLeavesCountsAsGone judges one gang in random clusters of which some pods leave, and in the same with these pods gone:
// the same must be told to leave, and nobody when the gang fits into what is free together with what is on its way.
func TestWhoLeavesCountsAsGone(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	awaited, told := 0, 0
	for n := range 2000 {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		s, gone := leavingScene(random)
		ask := important(1 + random.Int32N(6))
		ask.Shape.Requests = Amounts{gpu: 1 + random.Int64N(3)}
		if random.IntN(4) == 0 {
			ask.Apart = []Shape{{Requests: Amounts{gpu: 1 + random.Int64N(6)}}}
		}
		got, want := toldToLeave(s, ask), toldToLeave(gone, ask)
		if got != want {
			t.Fatalf("seed %d, cluster %d: %s are told to leave, and %s once who leaves has gone: %+v", seed, n, got, want, s)
		}
		now, fits, later := New(s).Ask(ask), New(s).fitsNow(ask), New(gone).fitsNow(ask)
		if (now.Leaving != nil) != (later && !fits) || (later && got != "map[]") {
			t.Fatalf("seed %d, cluster %d: now %+v, then it fits: %t, told to leave %s: %+v", seed, n, now, later, got, s)
		}
		if now.Leaving != nil {
			awaited++
		}
		if got != "map[]" {
			told++
		}
	}
	if awaited < 100 || told < 100 {
		t.Errorf("seed %d: %d gangs awaited room and for %d some were told to leave: the test proves little", seed, awaited, told)
	}
}

// leavingScene is a random cluster in which some pods leave, and the same once they have gone.
func leavingScene(random *rand.Rand) (s, gone Snapshot) {
	nodes, pods := randomCluster(random, random.IntN(9))
	queue := Queue{Name: "default", Allocated: Amounts{}}
	if random.IntN(3) == 0 {
		queue.Capability = Amounts{gpu: 6 + random.Int64N(20)}
	}
	s = Snapshot{Nodes: nodes, Queues: []Queue{queue}}
	for i := range 3 {
		s.Running = append(s.Running, Running{
			Job: job(fmt.Sprint("r", i)), Queue: "default", Tier: "low", Created: born.Add(time.Duration(i)),
		})
	}
	gone = s
	gone.Queues = []Queue{{Name: "default", Capability: queue.Capability, Allocated: Amounts{}}}
	for _, p := range pods {
		if p.Surplus == nil {
			p.Job = job(fmt.Sprint("r", random.IntN(4)))
		}
		s.Queues[0].Allocated[gpu] += p.Requests[gpu]
		if p.Leaving = random.IntN(4) == 0; !p.Leaving {
			gone.Queues[0].Allocated[gpu] += p.Requests[gpu]
			gone.Pods = append(gone.Pods, p)
		}
		s.Pods = append(s.Pods, p)
	}
	return s, gone
}

// toldToLeave writes down who must give way or stop for the gang.
func toldToLeave(s Snapshot, g *Gang) string {
	verdicts, _, _ := New(s).Judge(docket(g), born)
	all := map[string]string{}
	for key, v := range verdicts {
		if len(v.GiveUp) > 0 || v.Preempt != nil {
			all[key.Name] = fmt.Sprint(v.GiveUp, v.Preempt)
		}
	}
	return fmt.Sprint(all)
}

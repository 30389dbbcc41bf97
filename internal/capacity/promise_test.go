package capacity

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestGangWhoseRoomOthersTookClaimsAgainAfterAPause(t *testing.T) {
	g := NewWithT(t)
	nodes, at := []Node{nodeOf("a", 4)}, born
	d := docket(named("first", 1, time.Hour))
	_, d.Promises, _ = cluster(nodes, used("a", 2), surplus("a", "x", 3, 1), surplus("a", "x", 2, 1)).Judge(d, at)
	taken := cluster(nodes, used("a", 3), surplus("a", "x", 2, 1))
	_, d.Promises, _ = taken.Judge(d, at)
	at = at.Add(inTime)
	verdicts, promises, _ := taken.Judge(d, at)
	g.Expect(promises.Ended).To(HaveLen(1))
	g.Expect(verdicts[job("first")].Overdue).To(BeFalse(), "it never had the room")
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].InVain).To(ConsistOf(job("first")))
	d.Promises = promises
	verdicts, standing, again := taken.Judge(d, at.Add(time.Second))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(BeEmpty())
	g.Expect(again).To(Equal(inTime - time.Second))
	d.Promises = standing
	verdicts, _, _ = taken.Judge(d, at.Add(inTime))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(HaveLen(1), "nothing about it need change")
}

func TestEveryClaimThatEndedIsTold(t *testing.T) {
	g := NewWithT(t)
	nodes, full := []Node{nodeOf("a", 2)}, []Pod{surplus("a", "x", 3, 1), surplus("a", "x", 2, 1)}
	d := docket(named("first", 1, time.Hour), named("second", 1, time.Minute))
	at := born
	var verdicts map[types.NamespacedName]Verdict
	for range 2 { // One after the other has others leave for it, and is not placed.
		_, d.Promises, _ = cluster(nodes, full...).Judge(d, at)
		_, d.Promises, _ = cluster(nodes, full[1:]...).Judge(d, at)
		at = at.Add(inTime)
		verdicts, d.Promises, _ = cluster(nodes, full[1:]...).Judge(d, at)
	}
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].InVain).To(ConsistOf(job("first"), job("second")))
}

// unplaced is a docket whose gang of two has room on a node of four, and is not placed until its claim ends at the time returned.
func unplaced() (*Model, Docket, time.Time) {
	m, d := cluster([]Node{nodeOf("a", 4)}, used("a", 2)), docket(named("first", 2, time.Hour))
	d.Waiting[0].Pods = []types.UID{"p0", "p1"}
	_, d.Promises, _ = m.Judge(d, born)
	return m, d, born.Add(inTime)
}

func TestClaimEndsAtItsDeadline(t *testing.T) {
	g := NewWithT(t)
	m, d, end := unplaced()
	verdicts, _, again := m.Judge(d, end.Add(-time.Nanosecond))
	g.Expect(verdicts[job("first")].Overdue).To(BeFalse())
	g.Expect(again).To(Equal(time.Nanosecond))
	verdicts, _, _ = m.Judge(d, end)
	g.Expect(verdicts[job("first")]).To(And(HaveField("Overdue", true), HaveField("Since", born)))
}

func TestWhatRenewsAClaim(t *testing.T) {
	four := []Node{nodeOf("a", 4)}
	labelled := nodeOf("a", 4)
	labelled.Labels = map[string]string{"feature": "new"}
	for name, c := range map[string]struct {
		nodes   []Node
		queue   Queue
		pods    []types.UID
		renewed bool
	}{
		"nothing":              {four, Queue{}, []types.UID{"p0", "p1"}, false},
		"a label of a node":    {[]Node{labelled}, Queue{}, []types.UID{"p0", "p1"}, false},
		"what the Queue uses":  {four, Queue{Allocated: Amounts{gpu: 1}}, []types.UID{"p0", "p1"}, false},
		"another pod":          {four, Queue{}, []types.UID{"p0", "p2"}, true},
		"a limit of the Queue": {four, Queue{Capability: Amounts{gpu: 4}}, []types.UID{"p0", "p1"}, true},
		"another node":         {append([]Node{nodeOf("b", 1)}, four...), Queue{}, []types.UID{"p0", "p1"}, true},
		"the size of a node":   {[]Node{nodeOf("a", 5)}, Queue{}, []types.UID{"p0", "p1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m, d, end := unplaced()
			_, d.Promises, _ = m.Judge(d, end)
			c.queue.Name, d.Waiting[0].Pods = "default", c.pods
			changed := New(Snapshot{Nodes: c.nodes, Queues: []Queue{c.queue}, Pods: []Pod{used("a", 2)}})
			verdicts, _, _ := changed.Judge(d, end.Add(inTime-time.Nanosecond))
			g.Expect(verdicts[job("first")].Overdue).To(BeTrue(), "the pause is not over")
			verdicts, _, _ = changed.Judge(d, end.Add(inTime))
			g.Expect(verdicts[job("first")].Overdue).To(Equal(!c.renewed))
		})
	}
}

func TestPausesDoubleUpToAnHour(t *testing.T) {
	g := NewWithT(t)
	for times, want := range map[int]time.Duration{
		1: time.Minute, 2: 2 * time.Minute, 3: 4 * time.Minute, 6: 32 * time.Minute, 7: time.Hour, 8: time.Hour, 1000: time.Hour,
	} {
		g.Expect((&Ended{Times: times}).pauseBefore(time.Minute)).To(Equal(want), "after %d claims", times)
	}
	g.Expect((&Ended{Times: 1}).pauseBefore(2*time.Hour)).To(Equal(2*time.Hour), "never shorter than the timeout")
}

func TestAnEndedClaimCountsWhileItsGangIsAway(t *testing.T) {
	g := NewWithT(t)
	m, d, end := unplaced()
	_, d.Promises, _ = m.Judge(d, end)
	away := d
	away.Waiting = nil
	_, away.Promises, _ = m.Judge(away, end.Add(time.Second))
	g.Expect(away.Promises.RemainingAt(end.Add(59*time.Minute)).Ended).To(HaveLen(1),
		"nor does a queue forget in which nothing waits")
	g.Expect(away.Promises.RemainingAt(end.Add(time.Hour)).Ended).To(BeEmpty(), "but for an hour")
	g.Expect(away.Promises.WithoutPlaced(map[types.NamespacedName]bool{job("first"): true}).Ended).To(BeEmpty(), "it has its places")

	// It comes back with other pods, as a merge does that was set aside, or a job that was suspended.
	d.Waiting[0].Pods, d.Promises = []types.UID{"p2", "p3"}, away.Promises
	verdicts, _, again := m.Judge(d, end.Add(2*time.Second))
	g.Expect(verdicts[job("first")].Overdue).To(BeTrue(), "its pause goes on")
	g.Expect(again).To(Equal(inTime - 2*time.Second))
	_, d.Promises, _ = m.Judge(d, end.Add(inTime))
	_, promises, _ := m.Judge(d, end.Add(2*inTime))
	g.Expect(promises.Ended).To(ConsistOf(HaveField("Times", 2)), "the next pause is longer")
}

func TestPodsThatComeAndGoKeepNoClaimFromItsEnd(t *testing.T) {
	g := NewWithT(t)
	nodes := []Node{nodeOf("a", 4)}
	_, d, end := unplaced()
	for at := born; !at.After(end); at = at.Add(10 * time.Second) {
		_, d.Promises, _ = cluster(nodes, used("a", 2), leaves(used("a", 1))).Judge(d, at.Add(3*time.Second))
		_, d.Promises, _ = cluster(nodes, used("a", 2)).Judge(d, at.Add(6*time.Second))
	}
	g.Expect(d.Promises.Ended).To(HaveLen(1))
}

// full is a node of four that surplus of x fills.
func full() *Model {
	return cluster([]Node{nodeOf("a", 4)}, used("a", 2), surplus("a", "x", 3, 1), surplus("a", "x", 2, 1))
}

// made is a docket for whose gang of two the surplus left at born, and the model without it.
func made() (*Model, Docket) {
	after, d := cluster([]Node{nodeOf("a", 4)}, used("a", 2)), docket(named("first", 2, time.Hour))
	d.Waiting[0].Pods = []types.UID{"p0", "p1"}
	_, d.Promises, _ = full().Judge(d, born)
	_, d.Promises, _ = after.Judge(d, born)
	return after, d
}

func TestAGangThatClaimsNothingMeanwhileEndsItsClaim(t *testing.T) {
	g := NewWithT(t)
	after, d := made()
	away, x := d, types.NamespacedName{Name: "x"}
	away.Waiting = nil
	verdicts, promises, _ := after.Judge(away, born.Add(40*time.Second))
	g.Expect(promises.Standing).To(BeEmpty())
	g.Expect(verdicts[x].InVain).To(ConsistOf(job("first")), "who left is told")

	// It is back a second later with another pod: others do not leave for it again before its pause is over.
	d.Promises, d.Waiting[0].Pods = promises, []types.UID{"p0", "p2"}
	verdicts, d.Promises, _ = full().Judge(d, born.Add(41*time.Second))
	g.Expect(verdicts[x].GiveUp).To(BeEmpty())
	verdicts, _, _ = full().Judge(d, born.Add(40*time.Second+inTime))
	g.Expect(verdicts[x].GiveUp).To(HaveLen(2))

	// One that has got its places has ended nothing.
	after, d = made()
	d.Waiting, d.Placed = nil, map[types.NamespacedName]bool{job("first"): true}
	_, promises, _ = after.Judge(d, born.Add(time.Second))
	g.Expect(promises).To(Equal(Promises{}))
}

func TestAnotherNumberOfWorkersBuysNoTime(t *testing.T) {
	g := NewWithT(t)
	after, d := made()
	for at := born; at.Before(born.Add(inTime)); at = at.Add(10 * time.Second) {
		d.Waiting[0].Workers = 3 - d.Waiting[0].Workers
		_, d.Promises, _ = after.Judge(d, at)
	}
	_, promises, _ := after.Judge(d, born.Add(inTime))
	g.Expect(promises.Ended).To(HaveLen(1))
}

func TestANodeThatComesAndGoesEndsTheClaim(t *testing.T) {
	g := NewWithT(t)
	_, d := made()
	verdicts, promises, _ := cluster(nil).Judge(d, born.Add(30*time.Second))
	g.Expect(promises.Ended).To(HaveLen(1))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].InVain).To(ConsistOf(job("first")))
	d.Promises = promises
	verdicts, _, _ = full().Judge(d, born.Add(35*time.Second))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(BeEmpty(), "the node is back, and the pause goes on")
}

func TestAClockThatIsSetBackHoldsNoClaimUp(t *testing.T) {
	g := NewWithT(t)
	m, d := cluster([]Node{nodeOf("a", 2)}), docket(named("first", 2, time.Hour))
	_, d.Promises, _ = m.Judge(d, born)
	back := born.Add(-time.Hour)
	_, promises, again := m.Judge(d, back)
	g.Expect(again).To(Equal(inTime), "it has its time once more, and no hour")
	d.Promises = promises
	_, d.Promises, _ = m.Judge(d, back.Add(inTime))
	g.Expect(d.Promises.Ended).To(HaveLen(1))
	d.Promises = d.Promises.RemainingAt(back)
	g.Expect(d.Promises.Ended).To(ConsistOf(HaveField("At", back)), "the pause begins anew")
	g.Expect(d.Promises.RemainingAt(back.Add(longestPause)).Ended).To(BeEmpty())
}

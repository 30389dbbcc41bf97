package capacity

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// runs is a job of the tier that runs so many workers of one GPU on node a.
func runs(s *Snapshot, name, tier string, workers int, age time.Duration) {
	key := job(name)
	s.Running = append(s.Running, Running{
		Job: key, Queue: "default", Tier: tier, Priority: map[string]int32{"low": 1, "mid": 2, "high": 3}[tier],
		Created: born.Add(-age),
	})
	for i := range workers {
		p := used("a", 1)
		p.Job = key
		if i >= 2 {
			p = surplus("a", name, int32(i), 1)
			p.Job, p.Surplus.Job, p.Surplus.UID = key, key, types.UID(fmt.Sprint(name, i))
		}
		s.Pods = append(s.Pods, p)
	}
}

func important(workers int32) *Gang {
	g := named("launch", workers, time.Minute)
	g.TierName, g.Preempts = "high", []string{"low", "mid"}
	return g
}

func preemptedBy(s Snapshot, g *Gang) []string {
	s.Queues = []Queue{{Name: "default"}}
	verdicts, _, _ := New(s).Judge(docket(g), born)
	all := []string{}
	for key, v := range verdicts {
		if v.Preempt != nil {
			all = append(all, key.Name)
		}
	}
	return all
}

func TestPreemptionTakesTheLeastImportantAndYoungest(t *testing.T) {
	g := NewWithT(t)
	s := Snapshot{Nodes: []Node{nodeOf("a", 12)}}
	runs(&s, "old", "low", 2, 3*time.Hour)
	runs(&s, "young", "low", 2, time.Hour)
	runs(&s, "middle", "mid", 2, time.Minute)
	runs(&s, "same", "high", 2, time.Minute)
	runs(&s, "grown", "mid", 4, 5*time.Hour)
	g.Expect(preemptedBy(s, important(2))).To(BeEmpty(), "surplus is enough")
	g.Expect(preemptedBy(s, important(4))).To(ConsistOf("young"))
	g.Expect(preemptedBy(s, important(6))).To(ConsistOf("young", "old"))
	g.Expect(preemptedBy(s, important(8))).To(ConsistOf("young", "old", "middle"))
	g.Expect(preemptedBy(s, important(10))).To(ConsistOf("young", "old", "middle", "grown"))
	g.Expect(preemptedBy(s, important(11))).To(BeEmpty(), "its own tier is not touched, and nobody stops in vain")
	modest := important(4)
	modest.Preempts = nil
	g.Expect(preemptedBy(s, modest)).To(BeEmpty(), "not every tier preempts")
}

func TestPreemptionTakesWhoLosesTheLeastWork(t *testing.T) {
	g := NewWithT(t)
	s := Snapshot{Nodes: []Node{nodeOf("a", 8)}}
	for i, job := range []struct {
		name, tier string
		age        time.Duration
		stake      int64
	}{
		{"old", "low", 3 * time.Hour, 40}, {"young", "low", time.Hour, 900}, {"older", "low", 4 * time.Hour, 900}, {"mid", "mid", 0, 0},
	} {
		runs(&s, job.name, job.tier, 2, job.age)
		s.Running[i].WorkAtStake = job.stake
	}
	g.Expect(preemptedBy(s, important(2))).To(ConsistOf("old"), "it has just saved")
	g.Expect(preemptedBy(s, important(4))).To(ConsistOf("old", "young"), "of those that lose the same the youngest")
	g.Expect(preemptedBy(s, important(6))).To(ConsistOf("old", "young", "older"), "the tier comes first")
}

func TestPreemptionStopsNobodyWhoIsNotNeeded(t *testing.T) {
	s := Snapshot{Nodes: []Node{nodeOf("a", 8)}}
	runs(&s, "small", "low", 1, time.Hour)
	runs(&s, "large", "mid", 2, time.Hour)
	s.Pods = append(s.Pods, used("a", 5))
	NewWithT(t).Expect(preemptedBy(s, important(2))).To(ConsistOf("large"), "small alone is too little, and large alone is enough")
}

func TestRoomOnItsWayIsNotCountedTwice(t *testing.T) {
	g := NewWithT(t)
	s := Snapshot{Nodes: []Node{nodeOf("a", 6)}, Queues: []Queue{{Name: "default"}}}
	runs(&s, "grown", "mid", 4, 2*time.Hour)
	runs(&s, "core", "low", 2, time.Hour)
	first, second := important(2), important(4)
	first.Created, second.Job = born.Add(-time.Hour), job("second")
	verdicts, _, _ := New(s).Judge(docket(first, second), born)
	g.Expect(verdicts[job("core")].Preempt).To(BeNil(), "surplus serves the first, and is not there for the second")
}

func TestGangsThatAreBeingStoppedCount(t *testing.T) {
	g := NewWithT(t)
	s := Snapshot{Nodes: []Node{nodeOf("a", 4)}}
	runs(&s, "first", "low", 2, time.Hour)
	runs(&s, "second", "low", 2, 2*time.Hour)
	g.Expect(preemptedBy(s, important(2))).To(ConsistOf("first"))
	leave(s.Pods[:2])
	s.Running = s.Running[1:]
	g.Expect(preemptedBy(s, important(2))).To(BeEmpty(), "its pods are on their way")
	g.Expect(preemptedBy(s, important(3))).To(ConsistOf("second"), "and are not enough")
}

func TestResume(t *testing.T) {
	g := NewWithT(t)
	stopped := func(name string, workers int32, age time.Duration) *Gang {
		ask := named(name, workers, age)
		ask.TierName = "low"
		return ask
	}
	old, young := stopped("old", 3, 2*time.Hour), stopped("young", 3, time.Hour)
	nodes := []Node{nodeOf("a", 10)}
	next := func(free int64, waiting ...*Gang) string {
		if r := cluster(nodes, used("a", 10-free)).ChooseResumed([]*Gang{young, old}, waiting); r != nil {
			return r.Job.Name
		}
		return ""
	}
	g.Expect(next(6)).To(Equal("old"), "the oldest first")
	g.Expect(next(2)).To(BeEmpty())
	g.Expect(next(6, important(5))).To(BeEmpty(), "it would be preempted again")
	g.Expect(next(6, important(9))).To(Equal("old"), "what cannot be served now needs no room now")
	g.Expect(next(6, important(99))).To(Equal("old"), "what can never fit keeps nobody")
	g.Expect(next(6, named("waits", 4, time.Minute))).To(BeEmpty(), "those that wait come first")
	unknown := important(9)
	unknown.Shape.Unmodelled = "volumes"
	g.Expect(next(6, unknown)).To(Equal("old"), "it preempts nobody")
	same := stopped("also-old", 3, 2*time.Hour)
	for _, order := range [][]*Gang{{old, same}, {same, old}} {
		g.Expect(cluster(nodes).ChooseResumed(order, nil)).To(Equal(same),
			"of the same age the first by name, in any order of the list")
	}
	full := cluster(nodes, used("a", 7), surplus("a", "x", 2, 1), surplus("a", "x", 3, 2))
	g.Expect(full.ChooseResumed([]*Gang{old}, nil)).To(Equal(old), "a core comes before anybody's surplus")
}

func TestJobsThatTheModelDoesNotCoverAreNotStopped(t *testing.T) {
	s := Snapshot{Nodes: []Node{nodeOf("a", 2)}}
	runs(&s, "unknown", "low", 2, time.Hour)
	s.Running[0].Unmodelled = true
	NewWithT(t).Expect(preemptedBy(s, important(2))).To(BeEmpty(), "nobody could say when it may go on")
}

func TestNobodyStopsForAGangThatWasNotPlacedInTime(t *testing.T) {
	for name, c := range map[string]struct {
		taker   Pod
		workers int32
		// ends is how long after that its claim has ended: at once where all who leave for it are not enough any more.
		ends time.Duration
	}{
		"more surplus could serve it": {surplus("a", "x", 3, 1), 3, inTime},
		"a whole gang could serve it": {used("a", 1), 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			first, second := important(1), important(c.workers)
			first.Created, second.Job = born.Add(-time.Hour), job("second")
			s := Snapshot{Nodes: []Node{nodeOf("a", 3)}, Queues: []Queue{{Name: "default"}}}
			runs(&s, "young", "low", 2, time.Hour)
			s.Pods = append(s.Pods, surplus("a", "x", 2, 1))
			d := docket(first, second)
			_, d.Promises, _ = New(s).Judge(d, born)
			g.Expect(promised(d.Promises)).To(ConsistOf("launch"))
			s.Pods[2] = c.taker
			_, d.Promises, _ = New(s).Judge(d, born.Add(time.Second))
			verdicts, promises, _ := New(s).Judge(d, born.Add(time.Second+c.ends))
			g.Expect(promises.Ended).To(HaveLen(1))
			g.Expect(verdicts[job("young")].Preempt).To(HaveField("By", second.Job), "something else keeps the first out")
		})
	}
}

func TestSurplusWithinTheShareOfAnotherQueueIsNotCountedOn(t *testing.T) {
	g := NewWithT(t)
	s := Snapshot{Nodes: []Node{nodeOf("a", 5)}}
	runs(&s, "small", "low", 1, time.Hour)
	for i := range int32(4) {
		p := surplus("a", "other", 2+i, 1)
		p.Queue = "other"
		s.Pods = append(s.Pods, p)
	}
	stopped := func(deserved int64) *Preemption {
		s.Queues = []Queue{
			{Name: "default", Deserved: Amounts{gpu: 5}, Allocated: Amounts{gpu: 1}},
			{Name: "other", Deserved: Amounts{gpu: deserved}, Allocated: Amounts{gpu: 4}},
		}
		verdicts, _, _ := New(s).Judge(docket(important(2)), born)
		return verdicts[job("small")].Preempt
	}
	g.Expect(stopped(2)).To(BeNil(), "two of the other queue serve it")
	g.Expect(stopped(3)).NotTo(BeNil(), "one is all that the other queue has beyond its share")
}

func TestSurplusThatDoesNotLeaveIsNotCountedOn(t *testing.T) {
	g := NewWithT(t)
	s := Snapshot{Nodes: []Node{nodeOf("a", 5)}, Queues: []Queue{{Name: "default"}}}
	runs(&s, "grown", "mid", 4, time.Hour)
	runs(&s, "small", "low", 1, time.Hour)
	d := docket(important(3))
	verdicts, _, _ := New(s).Judge(d, born)
	g.Expect(verdicts[job("small")].Preempt).NotTo(BeNil(), "with two of surplus one more is enough")
	d.Leaves, d.Yields = func(types.NamespacedName) bool { return false }, func(types.NamespacedName) bool { return false }
	verdicts, _, _ = New(s).Judge(d, born)
	g.Expect(verdicts[job("grown")].Preempt).NotTo(BeNil())
}

func TestSurplusThatWaitsLeavesWhileTrainingsStop(t *testing.T) {
	g := NewWithT(t)
	s := Snapshot{Nodes: []Node{nodeOf("a", 2)}, Queues: []Queue{{Name: "default"}}}
	runs(&s, "young", "low", 2, time.Hour)
	waits := surplus("", "x", 9, 1)
	waits.Queue = "default"
	s.Pending = []Pod{waits}
	verdicts, _, _ := New(s).Judge(docket(important(2)), born)
	g.Expect(verdicts[job("young")].Preempt).NotTo(BeNil())
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(ConsistOf(types.UID("x-9")),
		"it would take the places one by one as they become free")
}

func TestNobodyStopsAgainForAGangWhoseRoomOthersTook(t *testing.T) {
	g := NewWithT(t)
	s := Snapshot{Nodes: []Node{nodeOf("a", 4)}, Queues: []Queue{{Name: "default"}}}
	runs(&s, "old", "low", 2, 2*time.Hour)
	runs(&s, "young", "low", 2, time.Hour)
	d := docket(important(4))
	_, d.Promises, _ = New(s).Judge(d, born)
	g.Expect(d.Promises.Standing[0].Stopped).To(HaveLen(2))
	// Young has stopped, and a gang of another queue is in its place; old goes on, because nothing would serve the gang now.
	s.Running, s.Pods = s.Running[:1], append(s.Pods[:2], used("a", 2))
	verdicts, promises, _ := New(s).Judge(d, born.Add(time.Second))
	g.Expect(verdicts[job("old")].Preempt).To(BeNil())
	g.Expect(promises.Standing).To(BeEmpty())
	g.Expect(verdicts[job("old")].InVain).To(ConsistOf(job("launch")))
}

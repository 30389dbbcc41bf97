package suspicion

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil/environ"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// share is a share of a number of cases, with its Wilson interval of 95 %.
type share struct{ hits, all int }

func (s share) value() float64 { return float64(s.hits) / float64(s.all) }

func (s share) interval() (low, high float64) {
	const z = 1.96
	n, p := float64(s.all), s.value()
	middle, half := (p+z*z/(2*n))/(1+z*z/n), z/(1+z*z/n)*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return middle - half, middle + half
}

func (s share) String() string {
	low, high := s.interval()
	return fmt.Sprintf("%.3f (%d of %d, 95 %% between %.3f and %.3f)", s.value(), s.hits, s.all, low, high)
}

// TIDELINE_SEEDS is of how many fleets, 3 by default.
func TestBadNodesAreFoundAndSoundOnesAreNot(t *testing.T) {
	g := NewWithT(t)
	recall, precision := share{}, share{}
	var delays time.Duration
	for seed := range environ.Number(t, "TIDELINE_SEEDS", 3) {
		fleet := drawFleet(seed)
		accused := fleet.accusations()
		for name, onset := range fleet.onset {
			recall.all++
			if at, is := accused[name]; is && at >= onset {
				recall.hits++
				delays += at - onset
			}
		}
		for name, at := range accused {
			precision.all++
			if onset, bad := fleet.onset[name]; bad && at >= onset {
				precision.hits++
			}
		}
	}
	t.Logf("recall %s, precision %s; told %.1f hours after the node turned bad, on average",
		recall, precision, delays.Hours()/float64(recall.hits))
	g.Expect(recall.value()).To(BeNumerically(">=", 0.9))
	g.Expect(precision.value()).To(BeNumerically(">=", 0.95))
}

// trained has a job of a task train on nodes for a time, from a time on.
func trained(e *Evidence, id string, s Source, from time.Time, lasts time.Duration, nodes ...string) {
	e.HoldNodes(types.UID(id), s, nodes, from)
	e.HoldNodes(types.UID(id), s, nil, from.Add(lasts))
}

// fails has a job of a task fail on a node, and be judged.
func fails(e *Evidence, id string, s Source, at time.Time, nodes ...string) {
	for _, n := range nodes {
		e.NoteFailure(types.UID(id), s, n, at)
	}
	e.SettleFailures(at.Add(together + time.Second))
}

func levelAt(e *Evidence, node string, now time.Time) Level {
	for _, s := range e.ListSuspects(now) {
		if s.Node == node {
			return s.Level
		}
	}
	return Clear
}

// wellKnown are tasks of two owners that have trained for a month on sound nodes.
func wellKnown(e *Evidence) (a, b Source, now time.Time) {
	a, b = Source{"alice", "ads/ctr"}, Source{"bob", "rec/rank"}
	for i, s := range []Source{a, b} {
		trained(e, fmt.Sprint("before-", i), s, epoch, 30*24*time.Hour, "s1", "s2", "s3", "s4")
	}
	return a, b, epoch.Add(30 * 24 * time.Hour)
}

func TestANodeIsHeldAgainstStepByStep(t *testing.T) {
	g := NewWithT(t)
	e := NewEvidence()
	a, b, now := wellKnown(e)
	e.HoldNodes("a", a, []string{"bad", "s1"}, now)
	e.HoldNodes("b", b, []string{"bad", "s2"}, now)
	fails(e, "a", a, now.Add(time.Hour), "bad")
	g.Expect(levelAt(e, "bad", now.Add(time.Hour))).To(Equal(Doubted), "the job avoids it")
	fails(e, "a", a, now.Add(2*time.Hour), "bad")
	fails(e, "a", a, now.Add(3*time.Hour), "bad")
	g.Expect(levelAt(e, "bad", now.Add(3*time.Hour))).To(Equal(Doubted), "one owner alone")
	fails(e, "b", b, now.Add(4*time.Hour), "bad")
	g.Expect(levelAt(e, "bad", now.Add(4*time.Hour))).To(Equal(Shunned), "others prefer others")
	fails(e, "b", b, now.Add(5*time.Hour), "bad")
	told := e.ListSuspects(now.Add(5 * time.Hour))
	g.Expect(told).To(HaveLen(1))
	g.Expect(told[0]).To(And(HaveField("Node", "bad"), HaveField("Level", Accused), HaveField("Owners", 2), HaveField("Tasks", 2),
		HaveField("Failures", BeNumerically("~", 5, 0.1))))

	// The node is repaired, and jobs train on it.
	g.Expect(levelAt(e, "bad", now.Add(3*24*time.Hour))).NotTo(Equal(Accused), "it is forgiven, the sooner the more train there")
	g.Expect(levelAt(e, "bad", now.Add(7*24*time.Hour))).To(Equal(Clear))
}

func TestRejectionsSpeakOfTheNode(t *testing.T) {
	g := NewWithT(t)
	e := NewEvidence()
	for i := range 2 {
		s := Source{fmt.Sprint("owner-", i), fmt.Sprint("team/task-", i)} // Nothing is known of them.
		e.NoteRejection(s, "bad", epoch)
		e.NoteRejection(s, "bad", epoch.Add(time.Minute))
	}
	g.Expect(levelAt(e, "bad", epoch.Add(2*time.Minute))).To(Equal(Accused))

	e = NewEvidence()
	for i := range 4 {
		s := Source{fmt.Sprint("owner-", i%2), fmt.Sprint("team/task-", i)}
		e.NoteRejection(s, "bad", epoch.Add(time.Duration(i)*time.Minute))
	}
	g.Expect(levelAt(e, "bad", epoch.Add(4*time.Minute))).To(Equal(Accused), "other tasks of an owner met it here, not elsewhere")

	e = NewEvidence()
	picky := Source{"alice", "ads/picky"} // Every node refuses it.
	for i := range 100 {
		e.NoteRejection(picky, fmt.Sprint("n", i), epoch.Add(time.Duration(i)*time.Minute))
	}
	later := len(e.ListSuspects(epoch.Add(100 * time.Minute)))
	g.Expect(later).To(BeNumerically("<", 5), "who is rejected everywhere says nothing of nodes")
}

func TestOneOwnerCannotBrandANode(t *testing.T) {
	g := NewWithT(t)
	e := NewEvidence()
	a, b, now := wellKnown(e)
	// Tasks that train well elsewhere and crash here, under ever new names.
	for i := range 500 {
		s := Source{"alice", fmt.Sprint("ads/try-", i)}
		id := fmt.Sprint("try-", i)
		trained(e, id+"-well", s, now, time.Hour, "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8")
		now = now.Add(time.Hour)
		e.HoldNodes(types.UID(id), s, []string{"victim"}, now)
		fails(e, id, s, now.Add(time.Minute), "victim")
		e.NoteRejection(s, "victim", now.Add(2*time.Minute))
		e.HoldNodes(types.UID(id), s, nil, now.Add(3*time.Minute))
		g.Expect(levelAt(e, "victim", now.Add(3*time.Minute))).To(BeNumerically("<=", Doubted), "time %d", i)
	}
	now = now.Add(3 * time.Minute)
	g.Expect(levelAt(e, "victim", now)).To(Equal(Doubted))
	// Nor with the help of one failure by chance.
	e.HoldNodes("b", b, []string{"victim"}, now)
	fails(e, "b", b, now.Add(time.Minute), "victim")
	g.Expect(levelAt(e, "victim", now.Add(time.Minute))).To(BeNumerically("<", Accused))
	// The task under the owner's good name is believed no more than the others.
	fails(e, "a", a, now.Add(time.Hour), "victim")
	g.Expect(levelAt(e, "victim", now.Add(time.Hour))).To(BeNumerically("<", Accused))
}

func TestJobsThatCrashEverywhereSayNothing(t *testing.T) {
	g := NewWithT(t)
	e := NewEvidence()
	now := epoch
	for i := range 3000 {
		// Three of them, so that different owners and tasks fail on every node.
		s := Source{fmt.Sprint("crasher-", i%3), fmt.Sprint("crash/task-", i%3)}
		id, node := fmt.Sprint("job-", i), fmt.Sprint("n", i%10)
		e.HoldNodes(types.UID(id), s, []string{node}, now)
		now = now.Add(5 * time.Minute)
		fails(e, id, s, now, node)
		e.HoldNodes(types.UID(id), s, nil, now.Add(2*time.Minute))
		now = now.Add(2 * time.Minute)
		g.Expect(e.ListSuspects(now)).To(BeEmpty(), "after crash %d", i)
	}
}

func TestAFailureOfAllWorkersBlamesNoNode(t *testing.T) {
	g := NewWithT(t)
	e := NewEvidence()
	a, b, now := wellKnown(e)
	var nodes []string
	for i := range 2 * mostTogether {
		nodes = append(nodes, fmt.Sprint("n", i))
	}
	e.HoldNodes("a", a, nodes, now)
	e.HoldNodes("b", b, nodes, now)
	for i := range 10 {
		at := now.Add(time.Duration(i+1) * time.Hour)
		fails(e, "a", a, at, nodes...)
		fails(e, "b", b, at, nodes...)
	}
	g.Expect(e.ListSuspects(now.Add(11 * time.Hour))).To(BeEmpty())
}

func TestAClockThatIsSetBackHarmsNothing(t *testing.T) {
	g := NewWithT(t)
	e := NewEvidence()
	a, _, now := wellKnown(e)
	e.HoldNodes("a", a, []string{"n1"}, now)
	fails(e, "a", a, now.Add(time.Hour), "n1")
	before := e.ListSuspects(now.Add(time.Hour))
	e.HoldNodes("a", a, []string{"n1", "n2"}, now.Add(-100*24*time.Hour))
	fails(e, "a", a, now.Add(-100*24*time.Hour), "n2")
	after := e.ListSuspects(now.Add(-100 * 24 * time.Hour))
	g.Expect(after).To(ContainElement(before[0]), "what was known stays")
	for _, s := range after {
		g.Expect(math.IsNaN(s.Sum) || math.IsInf(s.Sum, 0)).To(BeFalse())
		g.Expect(s.Sum).To(BeNumerically("<=", mostByOwner))
	}
}

func TestEvidenceIsBounded(t *testing.T) {
	g := NewWithT(t)
	const nodes, jobs = 5000, 10_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	e, now := NewEvidence(), epoch
	name := func(n int) string { return fmt.Sprintf("ip-10-11-12-%d.eu-central-1.compute.internal", n%nodes) }
	for i := range jobs {
		on := make([]string, 4)
		for k := range on {
			on[k] = name(4*i + k)
		}
		s := Source{fmt.Sprint("owner-", i%500), fmt.Sprint("team/task-", i)}
		e.HoldNodes(types.UID(fmt.Sprint("job-", i)), s, on, now)
	}
	// Each job fails once an hour for a morning, and each time says that it is of another owner and task.
	for hour := range 6 {
		now = now.Add(time.Hour)
		for i := range jobs {
			s := Source{fmt.Sprint("owner-", hour, "-", i), fmt.Sprint("team/task-", hour, "-", i)}
			id, on := types.UID(fmt.Sprint("job-", i)), name(4*i+hour%4)
			e.HoldNodes(id, s, []string{on, name(4*i + hour%4 + 1)}, now)
			e.NoteFailure(id, s, on, now)
		}
		e.SettleFailures(now.Add(2 * time.Minute))
	}
	began := time.Now()
	e.ListSuspects(now)
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	megabytes := float64(after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc)) / (1 << 20)
	t.Logf("%.1f MB for %d nodes and %d jobs; suspects listed in %s", megabytes, nodes, jobs, took)
	g.Expect(megabytes).To(BeNumerically("<", 64))
	g.Expect(len(e.tasks)).To(BeNumerically("<=", mostTasks))
	g.Expect(len(e.owners)).To(BeNumerically("<=", mostOwners))
	g.Expect(len(e.nodes)).To(BeNumerically("<=", nodes))
	for _, n := range e.nodes {
		g.Expect(len(n.gains)).To(BeNumerically("<=", mostWitnesses))
	}
	for i := range jobs {
		e.HoldNodes(types.UID(fmt.Sprint("job-", i)), Source{}, nil, now)
	}
	g.Expect(e.jobs).To(BeEmpty(), "jobs that are gone leave nothing")
	e.ListSuspects(now.Add(365 * 24 * time.Hour))
	g.Expect(e.open).To(BeEmpty())
}

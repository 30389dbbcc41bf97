package merging

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// stuck adds a merge that is heavier than others, and that Volcano does not place.
func (w *simulator) stuck(name string) *merger {
	m := w.add(name).full(w, 90*time.Hour)
	m.unplaceable = true
	return m
}

// live lets time pass in steps, in which merges that run complete.
func (w *simulator) live(d, step time.Duration) {
	w.t.Helper()
	for until := w.now.Add(d); w.now.Before(until); {
		w.pass(step)
		for _, m := range w.running() {
			w.merge(m)
		}
		w.settle()
	}
}

func TestHeadThatIsNotPlacedIsSetAside(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*merger)
		why    string
	}{
		"it would fit": {func(*merger) {}, "By Tideline's count there was room for them. Check what holds the pods back " +
			"(kubectl get events)"},
		"who knows": {
			func(m *merger) { m.unjudged = true }, "Tideline cannot tell whether there is room, because the pods ask for a volume."},
		"it asks for none": {func(m *merger) { m.verdict.Never, m.noClaim = nil, true }, "By Tideline's count none of them " +
			"waits for room."},
		"Volcano says why":  {func(m *merger) { m.says = "claim x not found" }, "Volcano says: claim x not found."},
		"no pod was placed": {func(*merger) {}, "Volcano placed no other pod in that time either. Check that its scheduler runs"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 4)
			m, next := w.stuck("stuck"), w.add("next").full(w, 12*time.Hour)
			c.change(m)
			w.settle()
			g.Expect(asks(m.status().Run)).To(BeTrue())
			g.Expect(w.plan().RequeueAfter).To(Equal(time.Minute))
			if name != "no pod was placed" && m.says == "" {
				w.changes.Placed = w.now.Add(time.Second) // In another pool.
			}
			w.now = w.now.Add(time.Minute)
			before := m.status().DeepCopy()
			w.carryOut(w.plan(), unlimited)
			g.Expect(m.status().Run.Outcome).To(Equal(v1beta1.OutcomeWithdrawn))
			g.Expect(m.status().Run.Reason).To(Equal(v1beta1.ReasonNotPlaced))
			g.Expect(EventsBetween(before, m.status())).To(ContainElement(HaveField("Message", ContainSubstring(c.why))))
			w.settle()
			g.Expect(next.status().Phase).To(Equal(v1beta1.MergeRunning), "the next had its turn")
			g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNotPlaced))
			g.Expect(m.status().Summary).To(Equal("Waiting (not placed)"))
			g.Expect(m.status().Message).To(HavePrefix("From 2026-11-22T06:00:00Z to 2026-11-22T06:01:00Z the run asked for 4 pods " +
				"of 4 cpu, 16Gi memory. Volcano placed 0 of them in 1m0s; the limit is 1m0s (claims.placementTimeoutSeconds of " +
				"the operator's configuration). "))
			g.Expect(m.status().Message).To(ContainSubstring(c.why))
			g.Expect(m.status().Message).To(HaveSuffix("Tideline set it aside at 06:01:00Z, so that other merges have their turn. " +
				"It asks again at " +
				"2026-11-22T06:02:00Z, or earlier if the spec, the Queue, a node or a volume claim of its namespace changes. Other " +
				"merges that are due go first."))
			g.Expect(m.leftovers()).To(BeEmpty())
			m.unplaceable = false
			w.merge(next)
			w.pass(time.Minute)
			g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning), "what kept it is mended")
			g.Expect(m.status().SetAside).To(BeNil())
		})
	}
}

// Before, an idle pool and three merges of the highest tier stood in the line for a month behind one that is never placed.
func TestMergesThatAreNeverPlacedCostTheOthersMinutes(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	for i := range 3 {
		m := w.stuck(fmt.Sprintf("stuck%d", i))
		m.unjudged = i == 1
	}
	w.settle()
	w.pass(time.Second)
	var others []*merger
	for i := range 3 {
		others = append(others, w.add(fmt.Sprintf("main%d", i), func(s *v1beta1.MergeJobSpec) { s.Tier = "main-traffic" }).
			full(w, 10*time.Hour))
	}
	w.live(4*time.Minute, 10*time.Second)
	for _, m := range others {
		g.Expect(m.status().LastFull.Name).NotTo(Equal("base"), "%s has merged", m.object.Name)
	}
	for range 6 * 8 { // Six days: from the first on, the times until they ask again are the longest.
		for _, m := range others {
			m.store.increments = append(m.store.increments, fmt.Sprintf("%06d", len(m.store.increments)+1))
		}
		w.live(3*time.Hour, time.Hour)
		for _, m := range others {
			g.Expect(w.now.Sub(m.status().LastFull.Time.Time)).To(BeNumerically("<", 14*time.Hour), "%s at %s", m.object.Name, w.now)
		}
	}
}

func TestHeadThatWaitsForRoomKeepsItsPlace(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 3)
	m, small := w.add("big").full(w, 50*time.Hour), w.add("small", func(s *v1beta1.MergeJobSpec) { s.MinReplicas = 1 })
	w.settle()
	for range 10 {
		w.pass(time.Hour)
		g.Expect(asks(m.status().Run)).To(BeTrue())
	}
	g.Expect(small.status().Position).To(HaveValue(Equal(int32(2))))
	w.room, m.unplaceable = 4, true
	w.pass(time.Second)
	g.Expect(m.status().Run.FitTime.Time).To(BeTemporally("==", w.now))
	w.pass(59 * time.Second)
	g.Expect(asks(m.status().Run)).To(BeTrue())
	w.room = 3
	w.pass(time.Second)
	w.room = 4
	w.pass(time.Hour)
	g.Expect(asks(m.status().Run)).To(BeTrue(), "the time begins anew when there is room anew")
	w.pass(time.Minute)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNotPlaced))
}

func TestHeadOfAPoolThatIsShutIsNotSetAside(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.stuck("a")
	w.settle()
	shut := func() Observed {
		o := w.observed()
		o.QueueState = "Closed"
		return o
	}
	for range 3 {
		w.now = w.now.Add(time.Hour)
		w.carryOut(Plan(shut(), w.now), unlimited)
		g.Expect(asks(m.status().Run)).To(BeTrue())
	}
	g.Expect(m.status().Message).To(ContainSubstring("is not open (state Closed)"))
	w.settle()
	g.Expect(asks(m.status().Run)).To(BeTrue(), "it has its time from when the Queue opened")
	w.pass(time.Minute)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNotPlaced))
}

func TestTheTimeUntilItAsksAgainDoublesWhileVolcanoIsAtWork(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.stuck("a")
	m.says = "no claim"
	w.settle()
	for _, want := range []int{1, 2, 4, 8, 16, 32, 32} {
		w.pass(time.Minute)
		backoff := m.status().SetAside.RetryTime.Sub(w.now)
		g.Expect(backoff).To(Equal(time.Duration(want) * time.Minute))
		g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNotPlaced))
		g.Expect(w.plan().RequeueAfter).To(Equal(backoff))
		w.pass(backoff)
		g.Expect(asks(m.status().Run)).To(BeTrue())
	}
	g.Expect(m.status().SetAside.Times).To(Equal(int32(7)))
}

func TestWhileTheSchedulerIsDownNoTimeGrows(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 40)
	for i := range 10 {
		w.stuck(fmt.Sprintf("m%d", i))
	}
	w.settle()
	for range 70 { // More than 32 minutes, the longest time.
		w.pass(time.Minute)
	}
	for _, m := range w.jobs {
		if aside := m.status().SetAside; aside != nil {
			g.Expect(aside.RetryTime.Sub(aside.Time.Time)).To(Equal(time.Minute))
		}
		m.unplaceable = false // The scheduler is back.
	}
	w.pass(time.Second)
	g.Expect(w.running()).NotTo(BeEmpty(), "at once")
	w.pass(time.Minute)
	g.Expect(w.running()).To(HaveLen(10))
}

func TestWhoWasSetAsideAsksAgainWhenSomethingChanges(t *testing.T) {
	for name, change := range map[string]func(*simulator, *merger){
		"its spec": func(_ *simulator, m *merger) {
			m.object.Spec.Template.Spec.Containers[0].Image = "other"
			m.object.Generation++
		},
		"a node":        func(w *simulator, _ *merger) { w.changes.Nodes = w.now },
		"the Queue":     func(w *simulator, _ *merger) { w.changes.Queue = w.now },
		"a claim":       func(w *simulator, m *merger) { m.claims = w.now },
		"the operator":  func(w *simulator, _ *merger) { w.changes = Changes{Started: w.now} },
		"half a minute": nil,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 4)
			m, next := w.stuck("a"), w.add("b").full(w, 12*time.Hour)
			w.settle()
			w.pass(time.Minute)
			g.Expect(next.status().Phase).To(Equal(v1beta1.MergeRunning))
			third := w.add("c").full(w, 11*time.Hour)
			third.unplaceable = true
			w.pass(30 * time.Second)
			g.Expect(asks(third.status().Run)).To(BeTrue())
			if change == nil {
				g.Expect(m.status().Position).To(BeNil())
				return
			}
			change(w, m)
			w.pass(time.Second)
			g.Expect(m.status().Position).To(HaveValue(Equal(int32(2))), "it is in the line")
			g.Expect(m.status().Message).To(ContainSubstring("Other merges go first, because Volcano did not place this one when " +
				"it last asked. From 2026-11-22T06:00:00Z to"))
			lighter := w.add("d").full(w, 11*time.Hour)
			w.settle()
			g.Expect(lighter.status().Position).To(HaveValue(Equal(int32(2))), "who comes later and can go passes")
			g.Expect(m.status().Position).To(HaveValue(Equal(int32(3))))
		})
	}
}

// In a line that is never empty it would else never have its turn again.
func TestADayAfterItWasSetAsideItsWeightCounts(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.stuck("a")
	w.settle()
	w.pass(time.Minute)
	m.unplaceable = false
	w.leaving = []Leftover{{Gone: w.now.Add(48 * time.Hour)}} // None of them asks in this test.
	other := w.add("b").full(w, 12*time.Hour)
	w.pass(23 * time.Hour)
	g.Expect(other.status().Position).To(HaveValue(Equal(int32(1))))
	g.Expect(m.status().Position).To(HaveValue(Equal(int32(2))))
	w.pass(time.Hour)
	g.Expect(m.status().Position).To(HaveValue(Equal(int32(1))), "it has the older full model")
	g.Expect(m.status().Message).NotTo(ContainSubstring("behind"))
}

func TestAnEditBuysTheHeadNoTime(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m, next := w.stuck("a"), w.add("b").full(w, 12*time.Hour)
	w.settle()
	for i := range 5 {
		w.pass(15 * time.Second)
		m.object.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("merge:%d", i)
		m.object.Generation++
		w.settle()
	}
	g.Expect(next.status().Phase).To(Equal(v1beta1.MergeRunning))
}

func TestAMergeThatWasCalledByHandIsCalledUntilItIsPlaced(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, time.Hour)
	m.unplaceable = true
	m.object.Annotations = map[string]string{v1beta1.AnnotationRunNow: "1"}
	w.settle()
	g.Expect(asks(m.status().Run)).To(BeTrue())
	w.pass(time.Minute)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNotPlaced))
	m.unplaceable = false
	w.pass(time.Minute)
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
	w.merge(m)
	w.settle()
	g.Expect(m.status().Run).To(BeNil(), "once")
}

func TestARestartedOperatorGivesTheHeadItsTimeAnew(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.stuck("a")
	w.settle()
	w.now = w.now.Add(time.Hour) // No operator runs.
	w.changes = Changes{Started: w.now}
	w.settle()
	g.Expect(asks(m.status().Run)).To(BeTrue(), "it does not know whether there was room")
	w.pass(time.Minute)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNotPlaced))
}

// Volcano binds a gang one pod after another.
func TestAGangThatIsBeingPlacedHasAsLongAgain(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.stuck("a")
	w.settle()
	w.now = w.now.Add(59 * time.Second)
	m.pods[0].Scheduled = true
	w.pass(time.Second)
	g.Expect(asks(m.status().Run)).To(BeTrue())
	w.pass(time.Minute)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNotPlaced))
	g.Expect(m.status().Message).To(ContainSubstring("Volcano placed 1 of them in 2m0s"))
}

// A pod that is not there, because its name or a quota does not let it, asks for no room.
func TestHeadWhosePodsAreNotThereIsSetAside(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m, next := w.stuck("a"), w.add("b").full(w, 12*time.Hour)
	w.settle()
	m.noClaim = true
	w.now = w.now.Add(time.Minute)
	m.pods = map[int32]*podstate.Worker{}
	w.carryOut(w.plan(), unlimited)
	g.Expect(m.status().Run.Message).To(ContainSubstring("Only 0 of the pods exist. Check whether older objects with their " +
		"names remain"))
	w.settle()
	g.Expect(next.status().Phase).To(Equal(v1beta1.MergeRunning))
}

// Pods that were placed the moment before they were told to go may have merged: what they made is on record, or it would be
// merged twice.
func TestARunThatMergedWhileItWasSetAsideHasMerged(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.stuck("a")
	w.settle()
	w.now = w.now.Add(time.Minute)
	run := m.status().Run.ID
	w.carryOut(w.plan(), unlimited)
	g.Expect(m.status().Run.Reason).To(Equal(v1beta1.ReasonNotPlaced))
	m.store.fulls = append(m.store.fulls, Full{Name: run, Time: w.now})
	m.store.trouble = &Trouble{Reason: v1beta1.ReasonStoreUnreachable, Message: "No answer."}
	m.look()
	w.settle()
	g.Expect(m.status().Message).To(HaveSuffix("Tideline must read the store to see whether the attempt merged after all: No " +
		"answer."))
	m.store.trouble = nil
	m.look()
	w.settle()
	g.Expect(m.status().History[0].Outcome).To(Equal(v1beta1.OutcomeMerged))
	g.Expect(m.status().LastFull.LastIncrement).To(Equal("000003"))
	g.Expect(m.status().SetAside).To(BeNil())
}

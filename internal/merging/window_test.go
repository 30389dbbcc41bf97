package merging

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// write adds increments to the store, as a training does.
func (m *merger) write(names ...string) { m.store.increments = append(m.store.increments, names...) }

// overWindow is a merge that is due once so many increments wait, over a window.
func overWindow(increments, window int32) func(*v1beta1.MergeJobSpec) {
	return func(s *v1beta1.MergeJobSpec) {
		s.Schedule, s.Window = &v1beta1.MergeSchedule{Increments: &increments}, &window
	}
}

func TestMergeIsDueByNewIncrements(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.Schedule = &v1beta1.MergeSchedule{Increments: ptr.To[int32](4)} })
	w.pass(400 * 24 * time.Hour)
	g.Expect(m.status().Summary).To(Equal("Waiting (weight 75 < 100)"), "however old it is, and without a full model too")
	g.Expect(m.status().Message).To(Equal("Weight 75 is below the threshold of 100; 3 increments wait, and 4 weigh 100 " +
		"(spec.schedule.increments)."))
	m.write("000004")
	w.pass(time.Minute)
	g.Expect(m.status().Run.Increments).To(Equal(int32(4)))
	m.write("000005")
	w.merge(m)
	w.settle()
	g.Expect(m.status().Summary).To(Equal("Waiting (weight 25 < 100)"), "those that are merged do not count again")
	m.write("000006", "000007", "000008")
	w.pass(time.Minute)
	g.Expect(m.names).To(Equal([]string{"000005", "000006", "000007", "000008"}))
	g.Expect(m.status().Run.Base).NotTo(BeEmpty(), "without a window they are merged into the last full model")
}

func TestMergeIsDueByAgeOrIncrementsWhicheverComesFirst(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 8)
	both := func(s *v1beta1.MergeJobSpec) { s.Schedule.Increments = ptr.To[int32](5) }
	old, busy, neither := w.add("old", both).full(w, 11*time.Hour), w.add("busy", both).full(w, time.Hour),
		w.add("neither", both).full(w, time.Hour)
	busy.write("000004", "000005")
	w.settle()
	g.Expect(old.status().Run).NotTo(BeNil(), "three increments, and old enough")
	g.Expect(busy.status().Run).NotTo(BeNil(), "five increments")
	g.Expect(neither.status().Run).To(BeNil())
	g.Expect(neither.status().Weight).To(HaveValue(Equal(int64(60))), "the larger of 10 and 60")
	w.pass(8*time.Hour + 59*time.Minute)
	g.Expect(neither.status().Run).To(BeNil())
	w.pass(time.Minute + time.Second)
	g.Expect(neither.status().DueTime.Time).To(Equal(w.now.Add(-time.Second)))
}

func TestBacklogOfIncrementsDoesNotOutweighAge(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	first := w.add("first").full(w, 90*time.Hour)
	w.settle()
	g.Expect(first.placed()).To(BeTrue())
	many := w.add("many", func(s *v1beta1.MergeJobSpec) { s.Schedule = &v1beta1.MergeSchedule{Increments: ptr.To[int32](1)} })
	aged := w.add("aged").full(w, 11*time.Hour)
	for range 500 {
		many.write("x")
	}
	w.pass(time.Second)
	g.Expect(aged.status().Run).NotTo(BeNil(), "weight 110 asks before 100")
	g.Expect(many.status().Weight).To(HaveValue(Equal(int64(100))), "503 increments where one is enough")
	w.pass(24 * time.Hour)
	g.Expect(many.status().Weight).To(HaveValue(Equal(int64(200))), "and a day of waiting")
}

func TestWindowMergesTheLastOnesAgain(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", overWindow(2, 4))
	w.settle()
	g.Expect(m.names).To(Equal([]string{"000001", "000002", "000003"}), "as many as there are")
	w.merge(m)
	w.settle()
	first := m.status().LastFull.Name
	g.Expect(m.status().LastFull.LastIncrement).To(Equal("000003"))
	g.Expect(m.status().Increments).To(BeZero())
	m.write("000004", "000005")
	w.pass(time.Minute)
	run := m.status().Run
	g.Expect(m.names).To(Equal([]string{"000002", "000003", "000004", "000005"}), "two are new, and two were merged before")
	g.Expect(run.Base).To(BeEmpty(), "nothing is accumulated")
	g.Expect(run.Increments).To(Equal(int32(4)))
	g.Expect(m.status().Increments).To(Equal(int32(2)), "two wait")
	g.Expect(m.status().Message).To(ContainSubstring("Merging 4 increments with nothing before them into full/"))
	m.write("000006")
	w.merge(m)
	w.settle()
	g.Expect(m.status().LastFull.Name).NotTo(Equal(first))
	g.Expect(m.status().Increments).To(Equal(int32(1)), "one came while it ran")
	m.write("000007", "000008", "000009", "000010", "000011")
	w.pass(time.Minute)
	g.Expect(m.names).To(Equal([]string{"000008", "000009", "000010", "000011"}), "what has left the window is not merged")
	w.merge(m)
	w.settle()
	g.Expect(m.status().Increments).To(BeZero(), "nor does it wait")
}

// A run whose list nobody has seen yet has the window as it is then, and its status says so first.
func TestWindowMovesOnUntilTheListIsMade(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", overWindow(1, 2))
	m.look()
	w.carryOut(w.plan(), unlimited)
	g.Expect(m.status().Run.LastIncrement).To(Equal("000003"))
	m.write("000004")
	m.look()
	w.carryOut(w.plan(), unlimited)
	g.Expect(m.list).To(BeNil(), "the status first")
	g.Expect(m.status().Run.LastIncrement).To(Equal("000004"))
	w.settle()
	g.Expect(m.names).To(Equal([]string{"000003", "000004"}))
}

// A list that was made for a window has what earlier full models contain. Merged into one of them, it would count twice.
func TestWindowThatIsTakenAwayMergesNothingTwice(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", overWindow(1, 3))
	w.settle()
	w.merge(m)
	w.settle()
	m.write("000004")
	w.now = w.now.Add(time.Minute)
	m.look()
	w.carryOut(w.plan(), unlimited)
	g.Expect(m.status().Run).NotTo(BeNil())
	g.Expect(m.status().Run.Increments).To(Equal(int32(3)))
	m.object.Spec.Window = nil
	m.object.Generation++
	w.settle()
	g.Expect(m.names).To(Equal([]string{"000004"}))
	g.Expect(m.status().Run.Base).To(Equal(m.status().LastFull.Name))
}

func TestWindowByHandMergesAgain(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", overWindow(9, 2))
	call := func(token string) {
		m.object.Annotations = map[string]string{v1beta1.AnnotationRunNow: token}
		w.pass(time.Minute)
	}
	call("1")
	g.Expect(m.names).To(Equal([]string{"000002", "000003"}), "although three are too few")
	w.merge(m)
	w.settle()
	call("2")
	g.Expect(m.names).To(Equal([]string{"000002", "000003"}), "nothing is new")
	w.merge(m)
	w.settle()
	m.store.increments = nil
	call("3")
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNoIncrements), "of nothing there is no average")
}

// completeWindow is complete for a run that began without a full model although there was one: it is over a window, and has the
// last increments as of when its list was made, in their order. From then on nobody knows what full models hold.
func (l *randomPool) completeWindow(m *merger, run *v1beta1.MergeRun) bool {
	k := l.models[m]
	if !k.windows {
		return false
	}
	k.content[run.ID] = len(m.store.increments)
	at := len(m.store.increments)
	for at > 0 && (len(m.names) == 0 || m.store.increments[at-1] != m.names[len(m.names)-1]) {
		at--
	}
	if len(m.names) > at || !slices.Equal(m.names, m.store.increments[at-len(m.names):at]) {
		l.breaks("%s: a run over a window merges %v, which are not neighbours", m.object.Name, m.names)
	}
	return true
}

// orderByIncrements is order for a schedule with a number of increments: they count for 100 at most, and the wait from then on.
func (l *randomPool) orderByIncrements(d *JobDecision) float64 {
	s, st := &d.Job.Object.Spec, &d.Status
	interval, age, waited := 24*time.Hour, 0.0, 0.0
	if s.Schedule.Interval != nil {
		interval = s.Schedule.Interval.Duration
	}
	if joined := d.Job.Object.Status.QueueTime; joined != nil {
		waited = max(-100, 100*l.now.Sub(joined.Time).Seconds()/interval.Seconds()) // As for age, a clock may have been set back.
	}
	switch {
	case s.Schedule.Interval == nil:
	case st.LastFull != nil:
		age = 100 * max(l.now.Sub(st.LastFull.Time.Time).Seconds(), 0) / interval.Seconds()
	default:
		age = 100 + waited
	}
	age = max(age, min(100*float64(st.Increments)/float64(*s.Schedule.Increments), 100)+waited)
	extra := min(int64(s.Weight.PerIncrement)*int64(st.Increments)+int64(s.Weight.Boost), 1000)
	return age*float64(l.config.Tiers.MergeFactor(st.Tier)) + float64(extra)
}

// judgeWindow: a run that begins is over the last increments and from no full model if its merge is over a window, and from the
// newest full model otherwise; one that is due by increments alone has as many as make it due, unless it was called by hand.
func (l *randomPool) judgeWindow(d *JobDecision) {
	was, run, s := d.Job.Object.Status.Run, d.Status.Run, &d.Job.Object.Spec
	if run == nil || (was != nil && was.ID == run.ID) {
		return
	}
	switch seen := d.Job.Store.Increments; {
	case s.Window != nil && (run.Base != "" || run.Increments > *s.Window || run.LastIncrement != seen.Last):
		l.breaks("%s is over a window of %d, and its run merges %d until %s into %q", d.Job.Key(), *s.Window, run.Increments,
			run.LastIncrement, run.Base)
	case s.Window == nil && run.Base != nameOf(d.Status.LastFull):
		l.breaks("%s merges into %q, and not into the newest full model", d.Job.Key(), run.Base)
	}
	if !s.Schedule.IsByIncrements() || run.ByHand {
		return
	}
	n := float64(d.Status.Increments)
	extra := min(float64(s.Weight.PerIncrement)*n+float64(s.Weight.Boost), 1000)
	if weight := 100*n/float64(*s.Schedule.Increments) + extra; weight < float64(*s.Threshold) {
		l.breaks("%s begins with %.0f of %d increments", d.Job.Key(), n, *s.Schedule.Increments)
	}
}

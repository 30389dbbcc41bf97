package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

func TestLabelsChangedByHandArePutBackAndNothingElseHappens(t *testing.T) {
	for name, change := range map[string]func(*podstate.Marks){
		"the part":    func(m *podstate.Marks) { m.Part = "surplus" },
		"the attempt": func(m *podstate.Marks) { m.Attempt = "7-7" },
		"the group":   func(m *podstate.Marks) { m.Group = "another" },
		"all of them": func(m *podstate.Marks) { *m = podstate.Marks{} },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4).trains()
			was, written := w.worker(1).Marks, w.written
			w.change(1, func(p *podstate.Worker) { change(&p.Marks) }).step()
			g.Expect(w.last.RestoreMarks).To(HaveLen(1))
			restored := w.last.RestoreMarks[0]
			g.Expect(restored.UID).To(Equal(w.worker(1).UID), "a pod created since is left alone")
			for _, m := range restored.Marks {
				g.Expect(m.Want).NotTo(Equal(m.Have), "no more than was changed")
			}
			g.Expect(w.worker(1).Marks).To(Equal(was))
			g.Expect(w.last.DeletePods).To(BeEmpty())
			g.Expect(w.last.CreateWorkers).To(BeEmpty())
			w.pass(time.Hour).settle()
			g.Expect(w.last.RestoreMarks).To(BeEmpty(), "at rest nothing is written")
			g.Expect(w.status().Restarts).To(BeZero())
			g.Expect(w.written).To(Equal(written), "the status says nothing of it")
		})
	}
}

func TestLabelsOfPodsThatLeaveOrAreNotOfTheAttemptAreLeftAlone(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	w.graceful = true
	w.change(0, func(p *podstate.Worker) { p.Terminating, p.Marks.Part = true, "gold" })
	w.change(1, func(p *podstate.Worker) { p.Attempt, p.Marks.Part = "0-1", "gold" }).step()
	g.Expect(w.last.RestoreMarks).To(BeEmpty())
}

// A controller of the user's sets the label again, each time it is put back.
func TestWhoFightsForALabelIsAnsweredSeldom(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	times := 0
	for range 24 * 60 * 12 {
		if w.worker(1).Marks.Part != "gold" {
			w.change(1, func(p *podstate.Worker) { p.Marks.Part = "gold" })
		}
		if w.step(); len(w.last.RestoreMarks) > 0 {
			times++
		} else {
			g.Expect(w.last.RequeueAfter).To(BeNumerically(">", 0), "it is not forgotten")
		}
		w.pass(5 * time.Second)
	}
	g.Expect(times).To(BeNumerically("~", 150, 10), "in a day")
	g.Expect(w.status().Restarts).To(BeZero())
	w.pass(2 * time.Hour).settle()
	g.Expect(w.o.PutBack.Times).To(Equal(1), "who comes later is answered as the first was")
}

func TestPauseEndsIfTheClockIsPutBack(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	b := jobstate.PutBack{}.AfterRestoring(now)
	g.Expect(b.PauseAt(now.Add(time.Second))).To(Equal(9 * time.Second))
	g.Expect(b.PauseAt(now.Add(-time.Hour))).To(BeZero())
	g.Expect(b.AfterRestoring(now.Add(-time.Hour)).Times).To(Equal(1))
}

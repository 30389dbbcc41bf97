package elastictrainingjob

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/training/progress"
)

func TestJobsAreWokenOnceAMinuteAndForAHang(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	c := newClock()
	s.trainings.now = func() time.Time { return c.now }
	s.trainings.open = nil
	key := client.ObjectKeyFromObject(s.job)
	f := &followed{job: nameOf(s.job), attempt: s.job.Status.Attempt.ID(), pod: "a", factor: 3}
	s.jobs[key] = f
	woken := 0
	report := func(step int64) {
		g.Expect(f.meter.NoteReport(progress.Report{Step: step, Total: 100, Checkpoint: -1, Phase: progress.PhaseTrain}, c.now, c.now)).
			To(Succeed())
	}
	for i := range 60 { // ten minutes, a report each ten seconds
		report(int64(i + 1))
		woken += len(s.listDue())
		c.pass(10 * time.Second)
	}
	g.Expect(woken).To(BeNumerically("<=", 11))
	g.Expect(woken).To(BeNumerically(">=", 9))
	c.pass(2 * time.Minute)
	g.Expect(s.listDue()).To(HaveLen(1), "it hangs")
}

// Of many trainings those are woken first whose status has missed most of what is left; all others have their turn.
func TestTenJobsASecondAreWokenForTheirFigures(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	c := newClock()
	s.trainings.now = func() time.Time { return c.now }
	const short, long = 20, 1000
	total := map[bool]int64{true: 90, false: 0} // A quarter of an hour, and any time.
	jobs := map[string]*followed{}
	for i := range short + long {
		name := strconv.Itoa(i)
		jobs[name] = &followed{job: jobNamed(name), pod: "a", factor: 3, woken: c.now.Add(-wakeEvery)}
		s.jobs[types.NamespacedName{Name: name}] = jobs[name]
	}
	step := int64(0)
	last := map[string]time.Time{}
	longest := map[bool]time.Duration{}
	for range 80 {
		step++
		for name, f := range jobs {
			i, _ := strconv.Atoi(name)
			report := progress.Report{Step: step, Total: total[i < short], Checkpoint: -1, Phase: progress.PhaseTrain}
			g.Expect(f.meter.NoteReport(report, c.now, c.now)).To(Succeed())
		}
		due := s.listDue()
		g.Expect(len(due)).To(BeNumerically("<=", mostWoken), "writes in %s", lookEvery)
		for _, job := range due {
			i, _ := strconv.Atoi(job.Name)
			if was, before := last[job.Name]; before {
				longest[i < short] = max(longest[i < short], c.now.Sub(was))
			}
			last[job.Name] = c.now
			f := jobs[job.Name]
			figures, _ := f.meter.ReadFigures(f.factor, c.now)
			f.shown = progress.ShowFigures(f.shown, figures)
		}
		c.pass(10 * time.Second)
	}
	g.Expect(last).To(HaveLen(short+long), "each has its turn")
	g.Expect(longest[true]).To(BeNumerically("<=", 90*time.Second), "a short one is shown as often as if it were alone")
	g.Expect(longest[false]).To(BeNumerically("<=", 5*time.Minute), "and others in turn")
	g.Expect(shareMissed(time.Minute, progress.Figures{Total: 1000, StepTime: 30 * 24 * time.Hour})).To(
		Equal(shareMissed(time.Minute, progress.Figures{})), "however long they go on")
}

package elastictrainingjob

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/progress"
)

const (
	// lookEvery is how often it is looked whether a training hangs, or its figures changed.
	lookEvery = 5 * time.Second
	// wakeEvery is how often a job is reconciled at most because its figures changed.
	wakeEvery = time.Minute
	// mostWoken is how many jobs are reconciled for that each time it is looked: ten a second. Each writes a status, and
	// 10,000 trainings that report would have 35 written.
	mostWoken = 50
	// longTraining is how long one goes on that has a long time left, or does not say.
	longTraining = time.Hour
)

// wakeDue wakes jobs that hang, and those whose figures changed, each once a minute at most, until the operator ends.
func (t *trainings) wakeDue(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, job := range t.listDue() {
			select {
			case t.wakes <- event.GenericEvent{Object: job}:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// listDue lists the jobs to wake now: all that begin or cease to hang, those that may be followed at last, and of those whose
// figures changed the most outdated.
func (t *trainings) listDue() []*v1beta1.ElasticTrainingJob {
	t.mu.Lock()
	defer t.mu.Unlock()
	var due []*v1beta1.ElasticTrainingJob
	var changed []outdated
	called := map[string]int{} // by namespace: how many are woken because a log may be followed
	now := t.now()
	for _, f := range t.jobs {
		if now.Sub(f.recorded) >= recordEvery {
			t.tellLedger(f)
		}
		figures, known := f.meter.ReadFigures(f.factor, now)
		switch {
		case f.crowded && t.logs[f.job.Namespace]+called[f.job.Namespace] < mostLogs && now.Sub(f.woken) >= wakeEvery:
			called[f.job.Namespace]++
			due = append(due, f.wake(now))
		case !known || f.pod == "":
		case f.stalled != (figures.Stall != nil):
			due = append(due, f.wake(now))
		case now.Sub(f.woken) >= wakeEvery && progress.ShowFigures(f.shown, figures) != f.shown:
			changed = append(changed, outdated{f, shareMissed(now.Sub(f.woken), figures)})
		}
	}
	if len(changed) > mostWoken {
		slices.SortFunc(changed, func(a, b outdated) int { return cmp.Compare(b.missed, a.missed) })
		changed = changed[:mostWoken]
	}
	for _, c := range changed {
		due = append(due, c.wake(now))
	}
	return due
}

// outdated is a training whose status has other figures than it reports.
type outdated struct {
	*followed

	missed float64
}

// shareMissed is how long figures have not been shown, as a multiple of how long the training goes on: minutes are much of a
// short one and little of a long one. Those of an hour or more count alike, so that they take turns.
func shareMissed(since time.Duration, f progress.Figures) float64 {
	left := longTraining
	if f.Total > 0 {
		left = min(max(f.TimeLeft(), wakeEvery), longTraining)
	}
	return float64(since) / float64(left)
}

// wake returns the job, and notes that it is woken.
func (f *followed) wake(now time.Time) *v1beta1.ElasticTrainingJob {
	f.woken = now
	return f.job
}

package arbiter

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/lifetime"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

const (
	// mostFutures is how many futures are drawn, and drawTime for how long: of a large cluster fewer are.
	mostFutures, drawTime = 100, time.Second
	// farthest is how far a future is looked into.
	farthest = 14 * 24 * time.Hour
	// mostBefore bounds how many of the gangs that wait are placed in a future: those that come first.
	mostBefore = 1000
)

// ErrNotJudging is for an arbiter that has judged nothing yet, as that of a replica that does not lead.
var ErrNotJudging = errors.New("this replica of the operator does not judge who has room")

// Outlook is when a training that does not exist yet would be placed.
type Outlook struct {
	// Gang is its core.
	Gang capacity.Gang
	// Answer is what the model says of it now, and Never the answer for a gang that would not fit if nothing else ran.
	Answer capacity.Answer
	Never  *capacity.Answer
	// Surplus is how many workers of other trainings would give way if it began now, and Jobs of how many trainings.
	Surplus, Jobs int
	// Before is how many gangs wait that come before it.
	Before int
	// Futures is how many were drawn, and Starts after what time it is placed in those in which it is within two weeks, ascending.
	Futures int
	Starts  []time.Duration
	// From says how often lifetimes were drawn from each source, over the trainings that run.
	From map[lifetime.Source]int
}

// StartBy is after what time a part, from 0 to 1, of the futures has the training placed; false for more than two weeks.
func (o *Outlook) StartBy(part float64) (time.Duration, bool) {
	at := max(0, int(math.Ceil(part*float64(o.Futures)))-1)
	if at >= len(o.Starts) {
		return 0, false
	}
	return o.Starts[at], true
}

// EndedTrainings are the trainings that have ended and are still there.
func (a *Arbiter) EndedTrainings(ctx context.Context) ([]lifetime.Ended, error) {
	m, done, err := a.mirrored(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var all []lifetime.Ended
	for key, job := range m.jobs {
		st := &job.Status
		if st.CompletionTime == nil || st.StartTime == nil {
			continue
		}
		all = append(all, lifetime.Ended{
			Namespace: key.Namespace, Task: trainingpod.TaskOf(job), Queue: st.Queue, At: st.CompletionTime.Time,
			Lasted: st.CompletionTime.Sub(st.StartTime.Time),
		})
	}
	return all, nil
}

// ForetellStart draws futures in which a training that does not exist yet joins a queue as of a time, with lifetimes from
// history. It changes nothing, and takes a second at most, in which other calls wait.
func (a *Arbiter) ForetellStart(
	ctx context.Context, job *v1alpha1.ElasticTrainingJob, queue string, history *lifetime.History, now time.Time,
) (*Outlook, error) {
	a.foretelling.Lock()
	defer a.foretelling.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.mu.RLock()
	judged, waiting := a.judged, a.waiting
	a.mu.RUnlock()
	if !judged {
		return nil, ErrNotJudging
	}
	m, done, err := a.mirrored(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	c := a.newCollector(m, now)
	o := &Outlook{From: map[lifetime.Source]int{}}
	variants := c.variantsOf(job, queue)
	o.Gang = *variants[0]
	model := capacity.New(c.snapshot(ctx))
	o.Answer = model.Ask(&o.Gang)
	if o.Answer.Unknown != "" {
		return o, nil
	}
	if o.Never = model.CeilingFor(&o.Gang); o.Never != nil {
		return o, nil
	}
	o.noteVictims(model.FindVictims(&o.Gang, c.surplusLeaves))
	others := o.othersOf(waiting)
	lasts := c.lifetimes(history, others, o.From)
	random := rand.New(rand.NewPCG(uint64(now.UnixNano()), 31)) //nolint:gosec // what is drawn is a simulation, and no secret
	for began := time.Now(); o.Futures < mostFutures && time.Since(began) < drawTime && ctx.Err() == nil; o.Futures++ {
		f := capacity.Future{Now: now, Horizon: farthest, Lasts: drawOnce(lasts, random)}
		if after, placed := foresee(model, variants, others, f); placed {
			o.Starts = append(o.Starts, after)
		}
	}
	slices.Sort(o.Starts)
	return o, nil
}

// variantsOf is the core of a training that does not exist yet, once for each model of accelerator that it may have.
func (c *collector) variantsOf(job *v1alpha1.ElasticTrainingJob, queue string) []*capacity.Gang {
	models := []string{""}
	if of := job.Spec.Accelerator; of != nil && of.Mixing != v1alpha1.MixingAllowed && len(of.Models) > 0 {
		models = of.Models
	}
	tier := c.tierOf(job)
	var all []*capacity.Gang
	for _, model := range models {
		g := &capacity.Gang{
			Job: types.NamespacedName{Namespace: job.Namespace, Name: job.Name}, Queue: queue, Tier: tier.Priority, TierName: tier.Name,
			Created: c.now, Workers: job.Spec.MinReplicas, Model: model,
		}
		g.Shape, g.Apart = c.shapesOf(job, model, g.Workers, true)
		g.Unserved = job.Spec.NetworkTopology != nil
		if highest, hard := job.Spec.NetworkTopology.HighestTier(); hard {
			g.Within = &highest
		}
		all = append(all, g)
	}
	return all
}

func (o *Outlook) noteVictims(victims []capacity.Surplus) {
	jobs := map[types.NamespacedName]bool{}
	for i := range victims {
		jobs[victims[i].Job] = true
	}
	o.Surplus, o.Jobs = len(victims), len(jobs)
}

// othersOf are the gangs that wait, in order, and counts those that come before this one.
func (o *Outlook) othersOf(waiting []capacity.Gang) []*capacity.Gang {
	others := make([]*capacity.Gang, 0, len(waiting)+1)
	for i := range waiting {
		if g := waiting[i]; g.Job != o.Gang.Job {
			others = append(others, &g)
		}
	}
	others = append(others, &o.Gang)
	capacity.SortGangs(others)
	o.Before = slices.Index(others, &o.Gang)
	others = slices.Delete(others, o.Before, o.Before+1)
	return others[:min(len(others), mostBefore)]
}

// lifetimes are by how long each training that runs or waits may last.
func (c *collector) lifetimes(
	history *lifetime.History, waiting []*capacity.Gang, from map[lifetime.Source]int,
) map[types.NamespacedName]func(*rand.Rand) time.Duration {
	all := map[types.NamespacedName]func(*rand.Rand) time.Duration{}
	for key, job := range c.jobs {
		if job.Status.StartTime == nil || job.Status.CompletionTime != nil {
			continue
		}
		ran := max(0, c.now.Sub(job.Status.StartTime.Time))
		draw, source := history.DrawFor(key.Namespace, trainingpod.TaskOf(job), job.Status.Queue, ran)
		all[key] = draw
		from[source]++
	}
	for _, g := range waiting {
		task := g.Job.Name
		if job := c.jobs[g.Job]; job != nil {
			task = trainingpod.TaskOf(job)
		}
		if all[g.Job] == nil {
			all[g.Job], _ = history.DrawFor(g.Job.Namespace, task, g.Queue, 0)
		}
	}
	return all
}

// drawOnce draws the lifetime of each gang once. One of which nothing is known stays.
func drawOnce(
	lasts map[types.NamespacedName]func(*rand.Rand) time.Duration, random *rand.Rand,
) func(types.NamespacedName) time.Duration {
	return func(of types.NamespacedName) time.Duration {
		if draw := lasts[of]; draw != nil {
			return draw(random)
		}
		return farthest + 1
	}
}

// foresee is when the first of the variants is placed.
func foresee(m *capacity.Model, variants, others []*capacity.Gang, f capacity.Future) (first time.Duration, placed bool) {
	drawn := map[types.NamespacedName]time.Duration{}
	lasts := f.Lasts
	f.Lasts = func(of types.NamespacedName) time.Duration { // All variants are asked about one future.
		if _, known := drawn[of]; !known {
			drawn[of] = lasts(of)
		}
		return drawn[of]
	}
	for _, g := range variants {
		if after, fits := m.ForeseeStart(g, others, f); fits && (!placed || after < first) {
			first, placed = after, true
		}
	}
	return first, placed
}

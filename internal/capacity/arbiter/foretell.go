package arbiter

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
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

var (
	// ErrNotJudging is for an arbiter that has judged nothing yet, as that of a replica that does not lead.
	ErrNotJudging = errors.New("this replica of the operator does not judge who has room")
	// ErrResting is for an arbiter that foretells for others now, or has just done so for long.
	ErrResting = errors.New("the operator simulates for others now")
)

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
	// Futures is how many were drawn; 0 if there was not time for one. Starts is after what time the training is placed in those in
	// which it is within two weeks, ascending.
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

// ReadyNodes are the nodes that are ready, without what is held of them. ErrNotJudging.
func (a *Arbiter) ReadyNodes(ctx context.Context) ([]capacity.Node, error) {
	a.mu.RLock()
	judged := a.judged
	a.mu.RUnlock()
	if !judged {
		return nil, ErrNotJudging
	}
	m, done, err := a.mirrored(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	nodes := make([]capacity.Node, 0, len(m.ready))
	for _, name := range m.ready {
		nodes = append(nodes, *m.nodes[name].ready)
	}
	return nodes, nil
}

// ForetellStart draws futures in which a training that does not exist yet joins a queue now. It changes nothing, and takes a
// second at most, without waiting: ErrResting, ErrNotJudging.
func (a *Arbiter) ForetellStart(ctx context.Context, job *v1beta1.ElasticTrainingJob, queue string) (*Outlook, error) {
	var o *Outlook
	var err error
	// Any user may ask.
	if !a.foretelling.DoWork(a.now, func() { o, err = a.ForetellStartAt(ctx, job, queue, a.now()) }) {
		return nil, ErrResting
	}
	return o, err
}

// ForetellStartAt is [Arbiter.ForetellStart] at a time of the model, for callers that need not rest. It takes a second at
// most, by the clock of the machine: ErrNotJudging.
func (a *Arbiter) ForetellStartAt(
	ctx context.Context, job *v1beta1.ElasticTrainingJob, queue string, now time.Time,
) (*Outlook, error) {
	began := a.now()
	o, f, err := a.sketch(ctx, job, queue, now)
	if err != nil || f == nil {
		return o, err
	}
	f.learn(o.From)
	random := rand.New(rand.NewPCG(uint64(now.UnixNano()), 31)) //nolint:gosec // what is drawn is a simulation, and no secret
	stop := func() bool { return a.now().Sub(began) >= drawTime || ctx.Err() != nil }
	for o.Futures < mostFutures && !stop() {
		after, placed := f.draw(random, now, stop)
		if !placed && stop() {
			break // Nothing is known of a future that was not looked at to its end.
		}
		o.Futures++
		if placed {
			o.Starts = append(o.Starts, after)
		}
	}
	slices.Sort(o.Starts)
	return o, nil
}

// futures is what futures are drawn from.
type futures struct {
	model *capacity.Model
	// variants is the gang asked about, on each model of accelerator that it may have. others wait.
	variants, others []*capacity.Gang
	// ended and ages are what is learnt from how long the trainings last.
	ended []lifetime.Ended
	ages  map[types.NamespacedName]aged
	lasts map[types.NamespacedName]lifetime.Draw
}

// sketch says what is known without a future, and returns what futures are drawn from; nil if none has to be. Afterwards nothing
// of the mirror is read, which others wait for.
func (a *Arbiter) sketch(
	ctx context.Context, job *v1beta1.ElasticTrainingJob, queue string, now time.Time,
) (*Outlook, *futures, error) {
	a.mu.RLock()
	judged, waiting := a.judged, a.waiting
	a.mu.RUnlock()
	if !judged {
		return nil, nil, ErrNotJudging
	}
	m, done, err := a.mirrored(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	c := a.newCollector(m, now)
	snapshot := c.snapshot(ctx)
	for i := range snapshot.Queues {
		snapshot.Queues[i].Allocated = maps.Clone(snapshot.Queues[i].Allocated) // The mirror goes on to count.
	}
	o, f := &Outlook{From: map[lifetime.Source]int{}}, &futures{model: capacity.New(snapshot), variants: c.variantsOf(job, queue)}
	o.Gang = *f.variants[0]
	if o.Answer = f.model.Ask(&o.Gang); o.Answer.Unknown != "" {
		return o, nil, nil
	}
	if o.Never = f.model.CeilingFor(&o.Gang); o.Never != nil {
		return o, nil, nil
	}
	o.noteVictims(f.model.FindVictims(&o.Gang, c.surplusLeaves))
	f.others = o.othersOf(waiting)
	f.ended, f.ages = c.endedTrainings(), c.agesOf(f.others)
	return o, f, nil
}

// endedTrainings are the trainings that have ended and are still there.
func (m *mirror) endedTrainings() (all []lifetime.Ended) {
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
	return all
}

// variantsOf is the core of a training that does not exist yet, once for each model of accelerator that it may have.
func (c *collector) variantsOf(job *v1beta1.ElasticTrainingJob, queue string) []*capacity.Gang {
	models := []string{""}
	if of := job.Spec.Accelerator; of != nil && of.Mixing != v1beta1.MixingAllowed && len(of.Models) > 0 {
		models = of.Models
	}
	tier := c.tierOf(job)
	var all []*capacity.Gang
	for _, model := range models {
		g := &capacity.Gang{
			Job: types.NamespacedName{Namespace: job.Namespace, Name: job.Name}, Queue: queue, Tier: tier.Priority, TierName: tier.Name,
			Created: c.now, Workers: job.Spec.MinReplicas, Model: model,
		}
		g.Shape, g.Apart, g.AnyOrder = c.shapesOf(job, model, g.Workers, nil)
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

// aged is a gang that has run for some time; not at all, if it waits.
type aged struct {
	task, queue string
	ran         time.Duration
}

// agesOf are the trainings that run, and the gangs that wait.
func (c *collector) agesOf(waiting []*capacity.Gang) map[types.NamespacedName]aged {
	all := map[types.NamespacedName]aged{}
	for key, job := range c.jobs {
		if st := &job.Status; st.StartTime != nil && st.CompletionTime == nil {
			all[key] = aged{trainingpod.TaskOf(job), st.Queue, max(1, c.now.Sub(st.StartTime.Time))}
		}
	}
	for _, g := range waiting {
		task := g.Job.Name
		if job := c.jobs[g.Job]; job != nil {
			task = trainingpod.TaskOf(job)
		}
		// One that ran before has a lifetime that knows for how long.
		if _, ran := all[g.Job]; !ran {
			all[g.Job] = aged{task: task, queue: g.Queue}
		}
	}
	return all
}

// learn says by how long each training that runs or waits may last, and counts where that of those which run is from.
func (f *futures) learn(from map[lifetime.Source]int) {
	history := lifetime.NewHistory(f.ended)
	f.lasts = make(map[types.NamespacedName]lifetime.Draw, len(f.ages))
	for key, of := range f.ages {
		draw, source := history.DrawFor(key.Namespace, of.task, of.queue, of.ran)
		f.lasts[key] = draw
		if of.ran > 0 {
			from[source]++
		}
	}
}

// draw draws one future, and says when the first of the variants is placed in it. For each gang one lifetime is drawn; a gang
// without one stays.
func (f *futures) draw(random *rand.Rand, now time.Time, stop func() bool) (first time.Duration, placed bool) {
	drawn, future := map[types.NamespacedName]time.Duration{}, lifetime.NewFuture(random)
	lasts := func(of types.NamespacedName) time.Duration { // All variants are asked about one future.
		if _, known := drawn[of]; !known {
			drawn[of] = farthest + 1
			if draw := f.lasts[of]; draw != nil {
				drawn[of] = draw(future)
			}
		}
		return drawn[of]
	}
	for _, g := range f.variants {
		after, fits := f.model.ForeseeStart(g, f.others, capacity.Future{Now: now, Horizon: farthest, Lasts: lasts, Stop: stop})
		if fits && (!placed || after < first) {
			first, placed = after, true
		}
	}
	return first, placed
}

package capacity

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Verdict is what a queue's decider says of one job.
type Verdict struct {
	// Place among the gangs that wait in the queue, from 1, of Waiting; both 0 for a job that does not wait.
	Place, Waiting int32
	// Answer is what the model says of the waiting gang.
	Answer Answer
	// Model is the model of accelerator that the waiting gang should wait for; empty for one that is bound to none.
	Model string
	// Holders are the jobs whose surplus the gang could take, the largest first; none for one that fits, or will without them.
	Holders []Holder
	// SurplusLimit is how many surplus workers a job that creates only what fits may have in all: those that are placed, and its
	// part of the room that nobody waits for.
	SurplusLimit int32
	// From are the jobs whose surplus leaves for this one.
	From []Holder
	// GiveUp are surplus workers of this job that must leave now, and To the gang they leave for.
	GiveUp []types.UID
	To     types.NamespacedName
	// Preempt is why the whole job must stop; nil when it need not.
	Preempt *Preemption
	// Resume is true for a job that was preempted and may go on.
	Resume bool
	// Never is the Ceiling of a gang that would not fit if nothing else ran; nil for every other, and where that is not asked.
	Never *Answer
}

// Holder is a job that holds surplus.
type Holder struct {
	Job     types.NamespacedName
	Workers int32
}

// Docket is all that Judge needs of one queue.
type Docket struct {
	Queue string
	// Waiting are the gangs that wait in the queue, in any order.
	Waiting []*Gang
	// Shrinks are what the last Judge returned.
	Shrinks Shrinks
	// Starved tells whether a gang has waited so long that surplus must be told to leave, and otherwise in what time it will have.
	Starved func(*Gang) (starved bool, in time.Duration)
	// Yields tells whether the job's surplus leaves on our word; that of others is left to Volcano. Leaves tells whether it leaves
	// for a waiting gang at all.
	Yields, Leaves func(types.NamespacedName) bool
}

// Judge decides for one queue: whose turn it is, what each gang waits for, and who gives way. It returns the verdicts by job,
// the shrinks as they are now, and when time alone changes the judgement; zero for never. Of several queues the first judged has
// the first choice of surplus.
func (m *Model) Judge(d Docket, now time.Time) (map[types.NamespacedName]Verdict, Shrinks, time.Duration) {
	waiting := ordered(d.Waiting)
	verdicts := make(map[types.NamespacedName]Verdict, len(waiting))
	for i, g := range waiting {
		v := Verdict{Place: int32(i + 1), Waiting: int32(len(waiting)), Answer: m.Ask(g), Model: g.Model}
		if !v.Answer.Fits && v.Answer.Leaving == nil {
			v.Holders = m.holders(g)
		}
		verdicts[g.Job] = v
	}
	m.choose(waiting, verdicts)
	shrinks, again := m.shrink(d, waiting, now)
	if s := shrinks.Current; s != nil {
		served := verdicts[s.For]
		served.From = holdersOf(s.Victims)
		for _, v := range s.Victims {
			m.claimed[v.UID] = true
		}
		verdicts[s.For] = served
		for _, v := range m.leaving(s, find(waiting, s.For), d.Yields) {
			verdict := verdicts[v.Job]
			verdict.GiveUp, verdict.To = append(verdict.GiveUp, v.UID), s.For
			verdicts[v.Job] = verdict
		}
	}
	if in := m.preemptFor(d, waiting, shrinks.Futile, verdicts); in > 0 && (again == 0 || in < again) {
		again = in
	}
	return verdicts, shrinks, again
}

// preemptFor tells gangs to stop for the first in the order of the queue that has starved and that neither surplus nor room on
// its way serves; not for one that was not placed in time after a shrink, because something that the model does not see keeps
// it out. It returns when the next will have starved.
func (m *Model) preemptFor(
	d Docket, waiting []*Gang, futile []Shrink, verdicts map[types.NamespacedName]Verdict,
) time.Duration {
	var again time.Duration
	rest, may := m.clone(), newReach(d.Leaves)
	for _, g := range waiting {
		if rest.fits(g) {
			rest.place(g, g.Workers, freeOn)
			continue
		}
		starved, in := d.Starved(g)
		switch {
		case !starved && (again == 0 || in < again):
			again = in
		case starved && !isFutile(futile, g):
			stopped, served := rest.preempt(g, may)
			if len(stopped) > 0 {
				m.tell(g, stopped, verdicts)
			}
			if served || len(stopped) > 0 {
				return again // Room is being made; who else needs some is judged when it is there.
			}
		}
		if rest.roomComes(g) {
			rest.place(g, g.Workers, soonOn)
		}
	}
	return again
}

// tell tells both sides that gangs stop for another.
func (m *Model) tell(g *Gang, stopped []Running, verdicts map[types.NamespacedName]Verdict) {
	v := verdicts[g.Job]
	for _, r := range stopped {
		told := verdicts[r.Job]
		told.Preempt = &Preemption{By: g.Job, Tier: g.TierName}
		verdicts[r.Job] = told
		v.From = append(v.From, Holder{Job: r.Job, Workers: int32(len(m.workers[r.Job]))})
	}
	verdicts[g.Job] = v
}

// Grower is a running job that creates only the surplus that fits.
type Grower struct {
	// Gang has the job's missing surplus as its Workers.
	Gang
	// Placed is how much surplus the job has on nodes.
	Placed int32
}

// Share gives the room out to the growers, whose turn it is by the order of gangs, one after another. A waiting gang that fits
// has its room first; one that waits for room on nodes that could ever serve it keeps all growers off those nodes. It returns
// how much surplus each grower may have in all.
func (m *Model) Share(growers []Grower, waiting []*Gang) map[types.NamespacedName]int32 {
	rest := m.clone()
	for _, g := range ordered(waiting) {
		rest.reserve(g)
	}
	limits := make(map[types.NamespacedName]int32, len(growers))
	slices.SortStableFunc(growers, func(a, b Grower) int { return a.before(&b.Gang) })
	for i := range growers {
		g := &growers[i]
		limits[g.Job] = g.Placed
		if part := min(rest.Ask(&g.Gang).Largest, g.Workers); part > 0 {
			rest.place(&g.Gang, part, freeOn)
			limits[g.Job] += part
		}
	}
	return limits
}

// reserve keeps for a waiting gang what it needs, or all that is free on its nodes while they have too little.
func (m *Model) reserve(g *Gang) {
	for on := range g.variants() {
		if m.fits(on) {
			m.place(on, on.Workers, freeOn)
			return
		}
	}
	if answer := m.Ask(g); answer.Unknown != "" || answer.QueueLimit {
		return
	}
	a := m.compile(&g.Shape)
	if m.room(g, &a, allOf) < g.Workers {
		return // It would not even fit if nothing else ran.
	}
	a.keepOff()
	if g.Master != nil {
		master := m.compile(g.Master)
		master.keepOff()
	}
}

// keepOff leaves nothing free of what is asked on the nodes that would take it.
func (a *ask) keepOff() {
	for _, n := range a.nodes {
		for _, at := range a.at {
			n.free[at], n.soon[at] = min(n.free[at], 0), min(n.soon[at], 0)
		}
	}
}

// holdersOf counts the surplus by job, in the order of the jobs' first victims.
func holdersOf(victims []Surplus) []Holder {
	var all []Holder
	for _, v := range victims {
		at := slices.IndexFunc(all, func(h Holder) bool { return h.Job == v.Job })
		if at < 0 {
			at, all = len(all), append(all, Holder{Job: v.Job})
		}
		all[at].Workers++
	}
	return all
}

// holders lists the jobs whose surplus the gang may take, on nodes that would take its workers, the largest first. It is made
// once for each set of nodes and kind of gang.
func (m *Model) holders(g *Gang) []Holder {
	a := m.compile(&g.Shape)
	key := a.constraints + "\n" + m.kind(g)
	if known, ok := m.held[key]; ok {
		return known
	}
	workers := map[types.NamespacedName]int32{}
	for _, n := range a.nodes {
		for _, p := range n.surplus {
			if m.mayTake(g, p) {
				workers[p.Surplus.Job]++
			}
		}
	}
	var all []Holder
	for job, n := range workers {
		all = append(all, Holder{Job: job, Workers: n})
	}
	slices.SortFunc(all, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Workers, a.Workers), cmp.Compare(a.Job.String(), b.Job.String()))
	})
	m.held[key] = all
	return all
}

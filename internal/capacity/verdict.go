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
	// Overdue is true for a gang that had room since Since and was not placed in time: its claim has ended. From are those
	// who left for it in vain.
	Overdue bool
	Since   time.Time
	// InVain are the gangs for which workers of this job left, or the job stopped, in vain.
	InVain []types.NamespacedName
	// Never is the Ceiling of a gang that would not fit if nothing else ran; nil for every other, and where that is not asked.
	Never *Answer
}

// Holder is a job that holds surplus.
type Holder struct {
	Job     types.NamespacedName
	Workers int32
}

// Docket is all that Review needs of one queue.
type Docket struct {
	Queue string
	// Waiting are the gangs that wait in the queue, in any order.
	Waiting []*Gang
	// Promises are what the last Decide returned.
	Promises Promises
	// Placed are the gangs, of any queue, that have all their places.
	Placed map[types.NamespacedName]bool
	// PlacementTimeout is how long a gang may take to be placed once there is room for it.
	PlacementTimeout time.Duration
	// Starved tells whether a gang has waited so long that surplus must be told to leave, and otherwise in what time it will have.
	Starved func(*Gang) (starved bool, in time.Duration)
	// Yields tells whether the job's surplus leaves on our word; that of others is left to Volcano. Leaves tells whether it leaves
	// for a waiting gang at all.
	Yields, Leaves func(types.NamespacedName) bool
}

// Decide decides for one queue: whose turn it is, what each gang waits for, and who gives way. It returns the verdicts by job,
// the promises as they are now, and when time alone changes the judgement; zero for never. Of several queues the first that is
// decided has the first choice of surplus.
func (r *Review) Decide() (map[types.NamespacedName]Verdict, Promises, time.Duration) {
	verdicts := make(map[types.NamespacedName]Verdict, len(r.ordered))
	for i, g := range r.ordered {
		v := Verdict{Place: int32(i + 1), Waiting: int32(len(r.ordered)), Answer: r.Ask(g), Model: g.Model}
		if !v.Answer.Fits && v.Answer.Leaving == nil {
			v.Holders = r.holders(g)
		}
		verdicts[g.Job] = v
	}
	r.choose(r.claiming, verdicts)
	r.makeRoomFor()
	r.tellPromises(verdicts)
	return verdicts, r.next, r.again
}

// Grower is a running job that creates only the surplus that fits.
type Grower struct {
	// Gang has the job's missing surplus as its Workers.
	Gang
	// Placed is how much surplus the job has on nodes.
	Placed int32
}

// LimitGrowth gives the room out to the growers, whose turn it is by the order of gangs, one after another. A waiting gang that
// fits has its room first; one that waits for room on nodes that could ever serve it keeps all growers off those nodes. It
// returns how much surplus each grower may have in all.
func (m *Model) LimitGrowth(growers []Grower, waiting []*Gang) map[types.NamespacedName]int32 {
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
	for i := range g.Apart {
		one := m.compile(&g.Apart[i])
		one.keepOff()
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

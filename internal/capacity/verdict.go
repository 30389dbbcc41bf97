package capacity

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// placementTime is how long a gang may take to be placed once its victims have left. One that is not placed by then gets no
// further shrink until the nodes or its ask change: something that the model does not see keeps it out.
const placementTime = 30 * time.Second

// Verdict is what a queue's decider says of one job.
type Verdict struct {
	// Place among the gangs that wait in the queue, from 1, of Waiting; both 0 for a job that does not wait.
	Place, Waiting int32
	// Answer is what the model says of the waiting gang.
	Answer Answer
	// Holders are the jobs whose surplus the gang could take, the largest first.
	Holders []Holder
	// SurplusLimit is how many surplus workers a job that creates only what fits may have in all: those that are placed, and its
	// part of the room that nobody waits for.
	SurplusLimit int32
	// From are the jobs whose surplus leaves for this one.
	From []Holder
	// GiveUp are surplus workers of this job that must leave now, and To the gang they leave for.
	GiveUp []types.UID
	To     types.NamespacedName
}

// Holder is a job that holds surplus.
type Holder struct {
	Job     types.NamespacedName
	Workers int32
}

// Shrink is room being made for one gang. There is one at a time per queue.
type Shrink struct {
	For types.NamespacedName
	// Ask is the gang's ask, and Nodes the fingerprint of the nodes, as they were when the shrink was decided.
	Ask     int32
	Nodes   uint64
	Victims []Surplus
	// Left is when the last victim was gone; zero while some are still there.
	Left time.Time
	// Futile is true once the gang was not placed in time.
	Futile bool
}

// Docket is all that Judge needs of one queue.
type Docket struct {
	Queue string
	// Waiting are the gangs that wait in the queue, in any order.
	Waiting []*Gang
	// Shrink is the one under way, as the last Judge returned it; nil for none.
	Shrink *Shrink
	// Starved tells whether a gang has waited so long that surplus must be told to leave; until says when it will have.
	Starved func(*Gang) (starved bool, in time.Duration)
	// Yields tells whether the job's surplus leaves on our word; that of others is left to Volcano.
	Yields func(types.NamespacedName) bool
}

// Judge decides for one queue: whose turn it is, what each gang waits for, and who gives way. It returns the verdicts by job,
// the shrink under way, and when time alone changes the judgement; zero for never.
func (m *Model) Judge(d Docket, now time.Time) (map[types.NamespacedName]Verdict, *Shrink, time.Duration) {
	waiting := slices.Clone(d.Waiting)
	Order(waiting)
	verdicts := make(map[types.NamespacedName]Verdict, len(waiting))
	holders := m.holders()
	for i, g := range waiting {
		verdicts[g.Job] = Verdict{
			Place: int32(i + 1), Waiting: int32(len(waiting)), Answer: m.Ask(g), Holders: m.mayTakeFrom(g, holders),
		}
	}
	shrink, again := m.shrink(d, waiting, now)
	if shrink != nil && !shrink.Futile {
		served := verdicts[shrink.For]
		served.From = holdersOf(shrink.Victims)
		verdicts[shrink.For] = served
	}
	if shrink != nil && shrink.Left.IsZero() {
		for _, v := range m.present(shrink.Victims) {
			verdict := verdicts[v.Job]
			verdict.GiveUp, verdict.To = append(verdict.GiveUp, v.UID), shrink.For
			verdicts[v.Job] = verdict
		}
	}
	return verdicts, shrink, again
}

// shrink keeps the shrink under way, or decides the next one.
func (m *Model) shrink(d Docket, waiting []*Gang, now time.Time) (*Shrink, time.Duration) {
	if s := d.Shrink; s != nil {
		g := find(waiting, s.For)
		switch {
		case g == nil || g.Workers != s.Ask || m.fingerprint() != s.Nodes:
			// It was placed, is gone, or what was decided on has changed.
		case s.Futile:
			return s, 0
		case len(m.present(s.Victims)) > 0:
			return s, 0
		case s.Left.IsZero():
			kept := *s
			kept.Left = now
			return &kept, placementTime
		case now.Sub(s.Left) < placementTime:
			return s, placementTime - now.Sub(s.Left)
		default:
			kept := *s
			kept.Futile = true
			return &kept, 0
		}
	}
	return m.next(d, waiting)
}

// next finds the first gang in the order of the queue that has starved and that surplus can serve. Room for gangs before it that
// fit is theirs.
func (m *Model) next(d Docket, waiting []*Gang) (*Shrink, time.Duration) {
	var again time.Duration
	rest := m.clone()
	for _, g := range waiting {
		if rest.Ask(g).Fits {
			rest.place(g, g.Workers)
			continue
		}
		starved, in := d.Starved(g)
		if !starved {
			if again == 0 || in < again {
				again = in
			}
			continue
		}
		if victims := rest.Victims(g, d.Yields); len(victims) > 0 {
			return &Shrink{For: g.Job, Ask: g.Workers, Nodes: m.fingerprint(), Victims: victims}, 0
		}
	}
	return nil, again
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
	waiting = slices.Clone(waiting)
	Order(waiting)
	for _, g := range waiting {
		rest.reserve(g)
	}
	limits := make(map[types.NamespacedName]int32, len(growers))
	slices.SortStableFunc(growers, func(a, b Grower) int { return a.before(&b.Gang) })
	for i := range growers {
		g := &growers[i]
		limits[g.Job] = g.Placed
		if part := min(rest.Ask(&g.Gang).Largest, g.Workers); part > 0 {
			rest.place(&g.Gang, part)
			limits[g.Job] += part
		}
	}
	return limits
}

// reserve keeps for a waiting gang what it needs, or all that is free on its nodes while they have too little.
func (m *Model) reserve(g *Gang) {
	answer := m.Ask(g)
	if answer.Fits {
		m.place(g, g.Workers)
		return
	}
	if answer.Unknown != "" || answer.QueueLimit {
		return
	}
	a := m.compile(&g.Shape)
	if !m.couldEverServe(g, &a) {
		return
	}
	for _, n := range a.nodes {
		for _, at := range a.at {
			n.free[at] = min(n.free[at], 0)
		}
	}
}

// couldEverServe tells whether the gang would fit if nothing else ran.
func (m *Model) couldEverServe(g *Gang, a *ask) bool {
	var workers int32
	for _, n := range a.nodes {
		if workers += a.count(n.all, g.Workers); workers >= g.Workers {
			return true
		}
	}
	return false
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

func find(gangs []*Gang, job types.NamespacedName) *Gang {
	for _, g := range gangs {
		if g.Job == job {
			return g
		}
	}
	return nil
}

// present are those of the victims that still hold a place.
func (m *Model) present(victims []Surplus) []Surplus {
	var still []Surplus
	for i := range m.nodes {
		for _, p := range m.nodes[i].surplus {
			if slices.ContainsFunc(victims, func(v Surplus) bool { return v.UID == p.Surplus.UID }) {
				still = append(still, *p.Surplus)
			}
		}
	}
	return still
}

// holders counts surplus by queue and job.
func (m *Model) holders() map[string]map[types.NamespacedName]*heldSurplus {
	all := map[string]map[types.NamespacedName]*heldSurplus{}
	for i := range m.nodes {
		for j := range m.nodes[i].surplus {
			p := &m.nodes[i].surplus[j]
			jobs := all[p.Queue]
			if jobs == nil {
				jobs = map[types.NamespacedName]*heldSurplus{}
				all[p.Queue] = jobs
			}
			if jobs[p.Surplus.Job] == nil {
				jobs[p.Surplus.Job] = &heldSurplus{pod: p}
			}
			jobs[p.Surplus.Job].workers++
		}
	}
	return all
}

type heldSurplus struct {
	pod     *Pod
	workers int32
}

// mayTakeFrom lists the holders whose surplus the gang may take, at most three: the rest would only lengthen a message.
func (m *Model) mayTakeFrom(g *Gang, held map[string]map[types.NamespacedName]*heldSurplus) []Holder {
	var all []Holder
	for _, jobs := range held {
		for job, h := range jobs {
			if m.mayTake(g, h.pod) {
				all = append(all, Holder{Job: job, Workers: h.workers})
			}
		}
	}
	slices.SortFunc(all, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Workers, a.Workers), cmp.Compare(a.Job.String(), b.Job.String()))
	})
	return all[:min(len(all), 3)]
}

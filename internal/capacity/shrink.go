package capacity

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// placementTime is how long a gang may take to be placed once its victims have left. One that is not placed by then gets no
// further shrink until the nodes or its ask change: something that the model does not see keeps it out.
const placementTime = 30 * time.Second

// Shrink is room being made for one gang.
type Shrink struct {
	For types.NamespacedName
	// Ask is the gang's ask, and Nodes the fingerprint of the nodes, as they were when the shrink was decided.
	Ask   int32
	Nodes uint64
	// Victims hold the places that the gang needs.
	Victims []Surplus
	// Left is when the last victim was gone, and whoever else leaves; zero while some that the gang needs are still there.
	Left time.Time
}

// Shrinks are those of one queue.
type Shrinks struct {
	// Current is the one under way, of which there is one at a time; nil for none.
	Current *Shrink
	// Futile are those whose gang was not placed in time; it gets no other as long as its ask and the nodes are the same.
	Futile []Shrink
}

// shrink keeps the shrink under way, or decides the next one.
func (m *Model) shrink(d Docket, waiting []*Gang, now time.Time) (Shrinks, time.Duration) {
	stands := func(s *Shrink) bool {
		g := find(waiting, s.For)
		return g != nil && g.Workers == s.Ask && s.Nodes == m.fingerprint()
	}
	var next Shrinks
	for i := range d.Shrinks.Futile {
		if stands(&d.Shrinks.Futile[i]) {
			next.Futile = append(next.Futile, d.Shrinks.Futile[i])
		}
	}
	if s := d.Shrinks.Current; s != nil && stands(s) {
		kept := *s
		switch {
		case len(m.present(s.Victims)) > 0 || m.awaits(find(waiting, s.For)):
			kept.Left = time.Time{}
			next.Current = &kept
			return next, 0
		case s.Left.IsZero():
			kept.Left = now
			next.Current = &kept
			return next, placementTime
		case now.Sub(s.Left) < placementTime:
			next.Current = &kept
			return next, placementTime - now.Sub(s.Left)
		}
		next.Futile = append(next.Futile, kept)
	}
	var again time.Duration
	next.Current, again = m.nextShrink(d, waiting, next.Futile)
	return next, again
}

// nextShrink finds the first gang in the order of the queue that has starved and that surplus can serve. Room for gangs before
// it that fit, or will once those who leave have gone, is theirs.
func (m *Model) nextShrink(d Docket, waiting []*Gang, futile []Shrink) (*Shrink, time.Duration) {
	var again time.Duration
	rest, may := m.clone(), newReach(d.Yields)
	for _, g := range waiting {
		if rest.settle(g) {
			continue
		}
		if isFutile(futile, g) {
			continue
		}
		starved, in := d.Starved(g)
		if !starved {
			if again == 0 || in < again {
				again = in
			}
			continue
		}
		if !rest.mayBeServed(g, may) {
			continue
		}
		if victims := rest.Victims(g, d.Yields); len(victims) > 0 {
			return &Shrink{For: g.Job, Ask: g.Workers, Nodes: m.fingerprint(), Victims: victims}, 0
		}
	}
	return nil, again
}

func isFutile(futile []Shrink, g *Gang) bool {
	return slices.ContainsFunc(futile, func(s Shrink) bool { return s.For == g.Job })
}

// awaits tells whether the gang does not fit now, and does once those who leave have gone.
func (m *Model) awaits(g *Gang) bool { return !m.fits(g) && m.roomComes(g) }

// mayBeServed tells whether surplus is enough for the gang at all.
func (m *Model) mayBeServed(g *Gang, r *reach) bool {
	a := m.compile(&g.Shape)
	return g.unmodelled() == "" && m.fitsWithout(g, &a, r.of(m, g).surplus)
}

// leaving lists who must leave for the shrink: the victims that still hold a place and, until the gang is placed, surplus of its
// queue and of theirs that waits, because it would take the places one by one while the gang needs them all.
func (m *Model) leaving(s *Shrink, g *Gang, yields func(types.NamespacedName) bool) []Surplus {
	queues := []string{g.Queue}
	all := m.present(s.Victims)
	for _, v := range s.Victims {
		queues = append(queues, v.queue)
	}
	for _, p := range m.pending {
		if slices.Contains(queues, p.Queue) && yields(p.Surplus.Job) {
			all = append(all, *p.Surplus)
		}
	}
	return all
}

// present are those of the victims that still hold a place.
func (m *Model) present(victims []Surplus) []Surplus {
	var still []Surplus
	for _, v := range victims {
		if s := m.placed[v.UID]; s != nil {
			still = append(still, *s)
		}
	}
	return still
}

func find(gangs []*Gang, job types.NamespacedName) *Gang {
	for _, g := range gangs {
		if g.Job == job {
			return g
		}
	}
	return nil
}

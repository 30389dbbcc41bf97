package capacity

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Preemption is why a gang must stop whole.
type Preemption struct {
	// By is the gang that it makes room for, and Tier the name of that gang's tier.
	By   types.NamespacedName
	Tier string
}

// preempt chooses the gangs that must stop whole so that the gang fits, with all surplus gone that it may take and that leaves:
// the least important first, then the youngest, and none that turns out not to be needed. Nobody stops when the gang preempts
// nobody, when all of them are not enough, and when it is served already: by that surplus, or by room that is on its way.
func (m *Model) preempt(g *Gang, r *reach) (stopped []Running, served bool) {
	if len(g.Preempts) == 0 || g.unmodelled() != "" {
		return nil, false
	}
	a, may := m.compile(&g.Shape), r.of(m, g)
	switch {
	case !m.fitsWithout(g, &a, may.everybody):
		return nil, false
	case m.fitsWithout(g, &a, may.surplus):
		return nil, true
	}
	gone := may.surplus.clone()
	var left [][]*Pod // by stopped gang: the pods that would not leave otherwise
	for len(stopped) == 0 || !m.fitsWithout(g, &a, gone) {
		next := may.gangs[len(stopped)]
		stopped, left = append(stopped, next), append(left, m.join(gone, m.workers[next.Job]))
	}
	for i := len(stopped) - 2; i >= 0; i-- {
		m.part(gone, left[i])
		if m.fitsWithout(g, &a, gone) {
			stopped = slices.Delete(stopped, i, i+1)
		} else {
			m.join(gone, left[i])
		}
	}
	return stopped, false
}

// Resume chooses the preempted gang that may go on: the oldest of those whose core fits beside the gangs that claim room, once
// surplus that it may take has left, as long as no claim would stop it again; nil for none. It is one at a time, because
// from then on it is a gang that waits. It is returned on the model of accelerator on which it fits.
func (m *Model) Resume(preempted, claiming []*Gang) *Gang {
	may := newReach(func(types.NamespacedName) bool { return true })
	preempted = slices.Clone(preempted)
	slices.SortFunc(preempted, func(a, b *Gang) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Job.Namespace, b.Job.Namespace), cmp.Compare(a.Job.Name, b.Job.Name))
	})
	standings := map[inQueue]*standing{}
	for _, p := range preempted {
		tier := inQueue{p.Queue, p.TierName}
		if standings[tier] == nil {
			standings[tier] = m.standing(tier, claiming, may)
		}
		s := standings[tier]
		for on := range p.variants() {
			a := s.rest.compile(&on.Shape)
			if !s.again && s.rest.fitsWithout(on, &a, may.of(s.rest, on).surplus) {
				return on
			}
		}
	}
	return nil
}

// inQueue is a tier in a queue.
type inQueue struct{ queue, tier string }

// standing is how stopped gangs of one tier in a queue stand with the gangs that claim room.
type standing struct {
	// again is true while a claim needs, or would stop, what goes on in that tier.
	again bool
	// rest is what those who claim room leave to the tier.
	rest *Model
}

// standing judges a tier. A gang that preempts the tier keeps it from going on while it can be served: it fits, or it
// would with everybody gone whom it may stop. One that could not be served even so, or that the model does not cover,
// neither stops anybody nor needs the room now; it can stop the tier once that would do.
func (m *Model) standing(of inQueue, claiming []*Gang, may *reach) *standing {
	s := &standing{rest: m.clone()}
	for _, g := range ordered(claiming) {
		if g.Queue != of.queue || !slices.Contains(g.Preempts, of.tier) {
			s.rest.reserve(g)
			continue
		}
		a := m.compile(&g.Shape)
		if g.unmodelled() == "" && m.fitsWithout(g, &a, may.of(m, g).everybody) {
			s.again = true
			return s
		}
	}
	return s
}

func ordered(gangs []*Gang) []*Gang {
	gangs = slices.Clone(gangs)
	Order(gangs)
	return gangs
}

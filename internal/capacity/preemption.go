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

// Resume chooses the preempted gang that may go on: the oldest of those whose core fits beside the gangs that wait, once
// surplus that it may take has left, as long as no gang waits that would preempt it again; nil for none. It is one at a time,
// because from then on it is a gang that waits. It is returned on the model of accelerator on which it fits.
func (m *Model) Resume(preempted, waiting []*Gang) *Gang {
	rest, may := m.clone(), newReach(func(types.NamespacedName) bool { return true })
	for _, g := range ordered(waiting) {
		rest.reserve(g)
	}
	again := m.preempting(waiting)
	preempted = slices.Clone(preempted)
	slices.SortFunc(preempted, func(a, b *Gang) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Job.Namespace, b.Job.Namespace), cmp.Compare(a.Job.Name, b.Job.Name))
	})
	for _, p := range preempted {
		if again[inQueue{p.Queue, p.TierName}] {
			continue
		}
		for on := range p.variants() {
			a := rest.compile(&on.Shape)
			if rest.fitsWithout(on, &a, may.of(rest, on).surplus) {
				return on
			}
		}
	}
	return nil
}

// inQueue is a tier in a queue.
type inQueue struct{ queue, tier string }

// preempting are the tiers of which gangs would be stopped for those that wait. A gang that would not fit on its nodes if nothing
// else ran, and one that the model does not cover, preempt nobody and keep nobody from going on.
func (m *Model) preempting(waiting []*Gang) map[inQueue]bool {
	tiers := map[inQueue]bool{}
	for _, g := range waiting {
		if len(g.Preempts) == 0 || g.unmodelled() != "" {
			continue
		}
		a := m.compile(&g.Shape)
		if m.hasRoom(g, &a, allOf) {
			for _, tier := range g.Preempts {
				tiers[inQueue{g.Queue, tier}] = true
			}
		}
	}
	return tiers
}

func ordered(gangs []*Gang) []*Gang {
	gangs = slices.Clone(gangs)
	Order(gangs)
	return gangs
}

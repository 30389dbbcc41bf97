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
// nobody, when all of them are not enough, and when it is served already: by that surplus, or by gangs that are on their way
// out.
func (m *Model) preempt(g *Gang, leaves func(types.NamespacedName) bool) (stopped []Running, served bool) {
	if len(g.Preempts) == 0 || g.unmodelled() != "" {
		return nil, false
	}
	a := m.compile(&g.Shape)
	gone := slices.DeleteFunc(m.surplusFor(g), func(p *Pod) bool { return !leaves(p.Surplus.Job) })
	var candidates []Running
	for _, r := range m.running {
		switch {
		case r.Stopping:
			gone = m.without(gone, r)
		case r.Queue == g.Queue && !r.Unmodelled && slices.Contains(g.Preempts, r.Tier):
			candidates = append(candidates, r)
		}
	}
	enough := func(stopped []Running) bool {
		all := slices.Clone(gone)
		for _, r := range stopped {
			all = m.without(all, r)
		}
		return m.withinLimit(g, all) && m.roomWithout(g, &a, all) >= g.Workers
	}
	slices.SortFunc(candidates, func(a, b Running) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), b.Created.Compare(a.Created),
			cmp.Compare(a.Job.Namespace, b.Job.Namespace), cmp.Compare(a.Job.Name, b.Job.Name))
	})
	switch {
	case enough(nil):
		return nil, true
	case !enough(candidates):
		return nil, false
	}
	n := 1
	for !enough(candidates[:n]) {
		n++
	}
	chosen := slices.Clone(candidates[:n])
	for i := n - 2; i >= 0; i-- {
		if others := slices.Delete(slices.Clone(chosen), i, i+1); enough(others) {
			chosen = others
		}
	}
	return chosen, false
}

// without adds the pods of a gang to those that are gone, each once.
func (m *Model) without(gone []*Pod, r Running) []*Pod {
	for _, p := range m.workers[r.Job] {
		same := func(g *Pod) bool { return g.Surplus != nil && g.Surplus.UID == p.Surplus.UID }
		if p.Surplus == nil || !slices.ContainsFunc(gone, same) {
			gone = append(gone, p)
		}
	}
	return gone
}

// Resume chooses the preempted gang that may go on: the oldest of those whose core fits beside the gangs that wait, once
// surplus that it may take has left, as long as no gang waits that would preempt it again; nil for none. It is one at a time,
// because from then on it is a gang that waits.
func (m *Model) Resume(preempted, waiting []*Gang) *Gang {
	rest := m.clone()
	for _, g := range ordered(waiting) {
		rest.reserve(g)
	}
	preempted = slices.Clone(preempted)
	slices.SortStableFunc(preempted, func(a, b *Gang) int { return a.Created.Compare(b.Created) })
	for _, p := range preempted {
		again := slices.ContainsFunc(waiting, func(g *Gang) bool {
			return g.Queue == p.Queue && slices.Contains(g.Preempts, p.TierName) && m.couldBeServed(g)
		})
		a := rest.compile(&p.Shape)
		gone := rest.surplusFor(p)
		if !again && rest.withinLimit(p, gone) && rest.roomWithout(p, &a, gone) >= p.Workers {
			return p
		}
	}
	return nil
}

// couldBeServed tells whether the gang would fit on its nodes if nothing else ran. One that never fits, and one that the model
// does not cover, preempt nobody and keep nobody from going on.
func (m *Model) couldBeServed(g *Gang) bool {
	a := m.compile(&g.Shape)
	return g.unmodelled() == "" && m.room(g, &a, allOf) >= g.Workers
}

// surplusFor is all surplus that the gang may take.
func (m *Model) surplusFor(g *Gang) []*Pod {
	var all []*Pod
	for i := range m.nodes {
		for j := range m.nodes[i].surplus {
			if p := &m.nodes[i].surplus[j]; m.mayTake(g, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

func ordered(gangs []*Gang) []*Gang {
	gangs = slices.Clone(gangs)
	Order(gangs)
	return gangs
}

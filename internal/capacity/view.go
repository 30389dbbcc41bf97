package capacity

import "slices"

// guest is some workers that are placed in thought, and the guests before them.
type guest struct {
	kin    *Kin
	on     int
	count  int32
	before *guest
}

// view is what an answer about room goes by: a vector of each node, which pods count as gone, and who is placed in thought.
type view struct {
	vector func(*node) []int64
	gone   func(*Pod) bool
	base   *occupancy
	// beside are placed in thought for this view alone.
	beside *guest
}

func (o *occupancy) freeView() view { return view{vector: o.freeOn, gone: o.isAbsent, base: o} }

func (o *occupancy) soonView() view {
	return view{vector: o.soonOn, base: o, gone: func(p *Pod) bool { return p.Leaving || o.vacated[p] || o.isAbsent(p) }}
}

// without is the view of one node that some pods have left, and that has so much free then.
func (v view) without(free []int64, pods []*Pod) view {
	gone := v.gone
	v.vector = func(*node) []int64 { return free }
	v.gone = func(p *Pod) bool { return slices.Contains(pods, p) || gone(p) }
	return v
}

// emptyView is a view of nodes on which nothing runs.
func emptyView() view { return view{vector: allOf, gone: func(*Pod) bool { return true }} }

func (o *occupancy) isAbsent(p *Pod) bool { return o.deserted || o.absent[p] }

// guests calls do for all who are placed in thought.
func (v view) guests(do func(*guest)) {
	for g := v.beside; g != nil; g = g.before {
		do(g)
	}
	if v.base != nil {
		for g := v.base.guests; g != nil; g = g.before {
			do(g)
		}
	}
}

// guestOn places n workers on a node in thought, beside those before; a negative number takes as many away that were placed there
// together. Workers that no rule could be about are nobody's guests.
func guestOn(kin *Kin, on *node, n int32, before *guest) *guest {
	switch {
	case kin == nil:
		return before
	case n < 0:
		return before.without(kin, on.number, -n)
	}
	return &guest{kin: kin, on: on.number, count: n, before: before}
}

// without is the guests but for some that were placed together.
func (g *guest) without(kin *Kin, on int, n int32) *guest {
	switch {
	case g == nil:
		return nil
	case g.kin == kin && g.on == on && g.count == n:
		return g.before
	}
	return &guest{kin: g.kin, on: g.on, count: g.count, before: g.before.without(kin, on, n)}
}

package capacity

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Some workers of a gang may have shapes of their own (Apart): worker 0 of a training, a launcher. They are placed first, one by
// one, and the common workers take what is left:
//
//	Apart[0] -> the node that costs the others least -> Apart[1] -> ... -> how many of Shape fit into the rest
//
// That is no search over all ways to place them, so victims for such gangs are few, but not always the fewest.

// Variant is the shapes of a gang on another model of accelerator.
type Variant struct {
	Model string
	Shape Shape
	Apart []Shape
}

// beyondModel names what the gang asks beyond the model; empty if the model covers it.
func (g *Gang) beyondModel() string {
	unknown := g.Shape.Unmodelled
	for i := range g.Apart {
		unknown = cmp.Or(unknown, g.Apart[i].Unmodelled)
	}
	if unknown == "" && len(g.Apart) > 0 && (!g.Shape.isNodeBound() || slices.ContainsFunc(g.Apart, func(s Shape) bool {
		return !s.isNodeBound()
	})) {
		return RulesOfShapes
	}
	return unknown
}

// isNodeBound is true for a worker whose rules about other pods are about single nodes, and for one without.
func (s *Shape) isNodeBound() bool { return s.Kin == nil || s.Kin.isNodeBound() }

// isRuled is true if some of the gang's workers have rules about other pods, or others have rules about them.
func (m *inventory) isRuled(g *Gang) bool {
	return m.compile(&g.Shape).rules != nil ||
		slices.ContainsFunc(g.Apart, func(s Shape) bool { return m.compile(&s).rules != nil })
}

// requestsOf is what the first n of the gang's workers ask for together, those of Apart first.
func (g *Gang) requestsOf(n int32) Amounts {
	total := Amounts{}
	for i := range g.Apart[:min(len(g.Apart), int(n))] {
		for name, amount := range g.Apart[i].Requests {
			total[name] += amount
		}
		n--
	}
	for name, amount := range g.Shape.Requests {
		total[name] += amount * int64(n)
	}
	return total
}

// resourceNames yields the resources that the gang's workers ask for, once each.
func (g *Gang) resourceNames() iter.Seq[corev1.ResourceName] {
	if len(g.Apart) == 0 {
		return maps.Keys(g.Shape.Requests)
	}
	// With one worker of the common shape all shapes are in it.
	return maps.Keys(g.requestsOf(int32(len(g.Apart)) + 1))
}

// variants yields the gang on each model of accelerator that it may choose, its own first.
func (g *Gang) variants() iter.Seq[*Gang] {
	return func(yield func(*Gang) bool) {
		if !yield(g) {
			return
		}
		for _, other := range g.Others {
			on := *g
			on.Model, on.Shape, on.Apart = other.Model, other.Shape, other.Apart
			if !yield(&on) {
				return
			}
		}
	}
}

// overlay is a vector of the nodes from which placed workers are subtracted. It copies only the nodes that change.
type overlay struct {
	below func(*node) []int64
	owned map[int][]int64
}

// newOverlay returns an overlay without placed workers.
func newOverlay(vector func(*node) []int64) *overlay {
	return &overlay{below: vector, owned: map[int][]int64{}}
}

func (o *overlay) vectorOf(n *node) []int64 {
	if own, ok := o.owned[n.number]; ok {
		return own
	}
	return o.below(n)
}

// ownCopy is the node's vector as a copy that may be changed.
func (o *overlay) ownCopy(n *node) []int64 {
	if _, ok := o.owned[n.number]; !ok {
		o.owned[n.number] = slices.Clone(o.below(n))
	}
	return o.owned[n.number]
}

// bestNode finds the node for one worker, who is kin, that leaves the most room for the others; nil if no node has room for it.
func (m *inventory) bestNode(one *ask, kin *Kin, others *ask, by view) *node {
	var best *node
	least, shared := int64(math.MaxInt64), m.nodeSet(others)
	for _, n := range one.nodes {
		if m.roomOn(one, n, by, 1) == 0 {
			continue
		}
		var lost int64
		if shared[n.number] {
			with, after := by, slices.Clone(by.vector(n))
			one.subtractFrom(n, after, 1)
			with.vector, with.beside = func(*node) []int64 { return after }, guestOn(kin, n, 1, by.beside)
			lost = int64(m.roomOn(others, n, by, math.MaxInt32)) - int64(m.roomOn(others, n, with, math.MaxInt32))
		}
		if lost < least {
			best, least = n, lost
		}
		if lost == 0 {
			break // No node can cost the others less than nothing.
		}
	}
	return best
}

// nodeSet is true for each node, by its number, that takes the worker.
func (m *inventory) nodeSet(a *ask) []bool {
	set := make([]bool, len(m.nodes))
	for _, n := range a.nodes {
		set[n.number] = true
	}
	return set
}

// subtractFrom subtracts what n workers take from a vector of a node.
func (a *ask) subtractFrom(on *node, vector []int64, n int32) {
	a.subtractTotals(vector, n)
	if a.wishes != nil {
		a.takeDevices(on, vector, n)
	}
}

// subtractTotals is subtractFrom without devices.
func (a *ask) subtractTotals(vector []int64, n int32) {
	for i, at := range a.at {
		vector[at] -= a.amount[i] * int64(n)
	}
}

// ofShapes are victims for a gang of several shapes, with no victim that is not needed. They are the fewest for each shape in
// turn, but not always for the whole gang.
func (s selection) ofShapes() []*Pod {
	// The node chosen for one worker may keep the others out. If so, surplus is taken in the order of victims until the gang fits.
	if chosen := s.withoutUnneeded(s.inTurn()); len(chosen) > 0 {
		return chosen
	}
	return s.withoutUnneeded(s.first())
}

// inTurn are the fewest victims for each worker in Apart, one after another, and then for all the others.
func (s selection) inTurn() []*Pod {
	rest, others := s.clone(), *s.g
	others.Apart, others.Workers = nil, s.g.Workers-int32(len(s.g.Apart))
	common := s.in(rest, &others)
	var chosen []*Pod
	for i := range s.g.Apart {
		single := *s.g
		single.Shape, single.Apart, single.Workers = s.g.Apart[i], nil, 1
		one := s.in(rest, &single)
		more := one.cheapest()
		rest.removeSurplus(more)
		seat := rest.bestNode(one.worker, single.Shape.Kin, common.worker, rest.soonView())
		if seat == nil {
			return nil
		}
		rest.place(one.worker, single.Shape.Kin, seat, 1)
		rest.allocate(&single, 1)
		chosen = append(chosen, more...)
	}
	return append(chosen, common.cheapest()...)
}

// first is the shortest prefix of the surplus, in the order of victims, with which the gang fits; or all of it.
func (s selection) first() []*Pod {
	all := slices.SortedFunc(maps.Keys(s.rank), comparePods)
	enough := sort.Search(len(all), func(n int) bool { return s.fitsWithout(s.newCrowd(all[:n+1])) })
	return all[:min(enough+1, len(all))]
}

// withoutUnneeded drops chosen surplus without which the gang fits as well; nil if all of it is not enough. What comes last in
// the order of victims is dropped first.
func (s selection) withoutUnneeded(chosen []*Pod) []*Pod {
	slices.SortFunc(chosen, comparePods)
	gone := s.newCrowd(chosen)
	if !s.fitsWithout(gone) {
		return nil
	}
	return s.dropUnneeded(chosen, gone)
}

// podsOf finds the pods of surplus by UID; nil for surplus that is on no node or leaving.
func (m *inventory) podsOf(all []Surplus) map[types.UID]*Pod {
	pods := make(map[types.UID]*Pod, len(all))
	for _, s := range all {
		pods[s.UID] = nil
	}
	for i := range m.nodes {
		for _, p := range m.surplus[i] {
			if _, is := pods[p.Surplus.UID]; is {
				pods[p.Surplus.UID] = p
			}
		}
	}
	return pods
}

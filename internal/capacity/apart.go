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

// Variant is a gang on another model of accelerator.
type Variant struct {
	Model string
	Shape Shape
	Apart []Shape
}

// unmodelled names what the gang asks that the model does not cover.
func (g *Gang) unmodelled() string {
	unknown := g.Shape.Unmodelled
	for i := range g.Apart {
		unknown = cmp.Or(unknown, g.Apart[i].Unmodelled)
	}
	return unknown
}

// asks is what the first n of the gang's workers ask together.
func (g *Gang) asks(n int32) Amounts {
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

// resources yields what the gang's workers ask for, once each.
func (g *Gang) resources() iter.Seq[corev1.ResourceName] {
	if len(g.Apart) == 0 {
		return maps.Keys(g.Shape.Requests)
	}
	return maps.Keys(g.asks(int32(len(g.Apart)) + 1))
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

// choose says of each gang on which model of accelerator it should wait: its own if it fits there, else the first other on
// which it fits, else its own. Who comes before it in the order has its room first, so that not all of them move to the same.
func (m *Model) choose(waiting []*Gang, verdicts map[types.NamespacedName]Verdict) {
	if !slices.ContainsFunc(waiting, func(g *Gang) bool { return len(g.Others) > 0 }) {
		return
	}
	rest := m.clone()
	for _, g := range waiting {
		for on := range g.variants() {
			if rest.settle(on) {
				v := verdicts[g.Job]
				v.Model = on.Model
				verdicts[g.Job] = v
				break
			}
		}
	}
}

// freeOn, soonOn and allOf are the vectors of a node in which room is looked for: what is free now, what will be once those who
// leave have gone, and what it has.
func freeOn(n *node) []int64 { return n.free }
func soonOn(n *node) []int64 { return n.soon }
func allOf(n *node) []int64  { return n.all }

// room is how many of the gang's workers fit into a vector of the nodes.
func (m *inventory) room(g *Gang, a *ask, vector func(*node) []int64) int32 {
	if len(g.Apart) == 0 {
		return a.room(vector)
	}
	beside := beside(vector)
	for i := range g.Apart {
		one := m.compile(&g.Apart[i])
		seat := m.seat(&one, a, beside.of)
		if seat == nil {
			return int32(i)
		}
		one.take(beside.own(seat), 1)
	}
	return int32(min(int64(a.room(beside.of))+int64(len(g.Apart)), math.MaxInt32))
}

// hasRoom tells whether the whole gang fits into a vector of the nodes.
func (m *inventory) hasRoom(g *Gang, a *ask, vector func(*node) []int64) bool {
	if len(g.Apart) > 0 && a.room(vector) < g.Workers-int32(len(g.Apart)) {
		return false // Wherever those of their own shape sit, they make no room for the others.
	}
	return m.room(g, a, vector) >= g.Workers
}

// overlay is a vector of the nodes with workers placed beside what is there.
type overlay struct {
	below func(*node) []int64
	owned map[int][]int64
}

func beside(vector func(*node) []int64) *overlay {
	return &overlay{below: vector, owned: map[int][]int64{}}
}

func (o *overlay) of(n *node) []int64 {
	if own, ok := o.owned[n.number]; ok {
		return own
	}
	return o.below(n)
}

// own is the node's vector as a copy that may be changed.
func (o *overlay) own(n *node) []int64 {
	if _, ok := o.owned[n.number]; !ok {
		o.owned[n.number] = slices.Clone(o.below(n))
	}
	return o.owned[n.number]
}

// seat finds the node for one worker that leaves the most room for the others; nil when no node has room for it.
func (m *inventory) seat(one, others *ask, vector func(*node) []int64) *node {
	var best *node
	least, shared := int64(math.MaxInt64), m.takes(others)
	for _, n := range one.nodes {
		if one.count(vector(n), 1) == 0 {
			continue
		}
		var lost int64
		if shared[n.number] {
			after := slices.Clone(vector(n))
			one.take(after, 1)
			lost = int64(others.count(vector(n), math.MaxInt32)) - int64(others.count(after, math.MaxInt32))
		}
		if lost < least {
			best, least = n, lost
		}
		if lost == 0 {
			break // No other node costs the others less.
		}
	}
	return best
}

// takes tells of each node, by its number, whether it takes the worker.
func (m *inventory) takes(a *ask) []bool {
	set := make([]bool, len(m.nodes))
	for _, n := range a.nodes {
		set[n.number] = true
	}
	return set
}

// take books n workers into a vector.
func (a *ask) take(vector []int64, n int32) {
	for i, at := range a.at {
		vector[at] -= a.amount[i] * int64(n)
	}
}

// occupy books n workers to a node.
func (a *ask) occupy(on *node, n int32) {
	a.take(on.free, n)
	a.take(on.soon, n)
}

// victimsOfShapes finds victims for a gang of several shapes; each of them is needed. Whom it may take is what the whole gang
// may. Shape by shape they are the fewest for each, but the place of one worker may then keep the others out, so that where this
// finds none, all surplus is tried that comes first in the order of victims.
func (m *Model) victimsOfShapes(g *Gang, yields func(types.NamespacedName) bool) []Surplus {
	rank := m.ranks(g, yields)
	if chosen := m.needed(g, m.victimsInTurn(g, rank)); len(chosen) > 0 {
		return chosen
	}
	return m.needed(g, m.firstVictims(g, rank))
}

// victimsInTurn gives each worker of a shape of its own its place first, by the fewest victims, and then the others theirs.
func (m *Model) victimsInTurn(g *Gang, rank map[*Surplus]int64) []Surplus {
	rest, others := m.clone(), *g
	others.Apart, others.Workers = nil, g.Workers-int32(len(g.Apart))
	worker := rest.compile(&others.Shape)
	var chosen []Surplus
	for i := range g.Apart {
		single := *g
		single.Shape, single.Apart, single.Workers = g.Apart[i], nil, 1
		one := rest.compile(&single.Shape)
		more := rest.victims(&single, &one, rank)
		rest.leave(more)
		seat := rest.seat(&one, &worker, soonOn)
		if seat == nil {
			return nil
		}
		one.occupy(seat, 1)
		rest.book(&single, 1)
		chosen = append(chosen, more...)
	}
	return append(chosen, rest.victims(&others, &worker, rank)...)
}

// firstVictims are as many of the ranked as it takes for the gang to fit, in the order of victims; all where that is not enough.
func (m *Model) firstVictims(g *Gang, rank map[*Surplus]int64) []Surplus {
	inOrder := slices.SortedFunc(maps.Keys(rank), func(a, b *Surplus) int { return cmp.Compare(rank[a], rank[b]) })
	all := make([]Surplus, len(inOrder))
	for i, s := range inOrder {
		all[i] = *s
	}
	pods, a := m.podsOf(all), m.compile(&g.Shape)
	enough := sort.Search(len(all), func(n int) bool {
		gone := m.crowd(nil)
		for i := range all[:n+1] {
			m.join(gone, []*Pod{pods[all[i].UID]})
		}
		return m.fitsWithout(g, &a, gone)
	})
	return all[:min(enough+1, len(all))]
}

// needed are those of the chosen that the gang needs to leave, in the order of victims; none if all of them are not enough.
func (m *Model) needed(g *Gang, chosen []Surplus) []Surplus {
	slices.SortFunc(chosen, func(a, b Surplus) int { return a.compare(&b) })
	pods := m.podsOf(chosen)
	a, gone := m.compile(&g.Shape), m.crowd(slices.Collect(maps.Values(pods)))
	if !m.fitsWithout(g, &a, gone) {
		return nil
	}
	for i := len(chosen) - 1; i >= 0; i-- {
		one := []*Pod{pods[chosen[i].UID]}
		m.part(gone, one)
		if m.fitsWithout(g, &a, gone) {
			chosen = slices.Delete(chosen, i, i+1)
		} else {
			m.join(gone, one)
		}
	}
	return chosen
}

// podsOf are the pods of surplus that is on nodes.
func (m *inventory) podsOf(all []Surplus) map[types.UID]*Pod {
	pods := make(map[types.UID]*Pod, len(all))
	for _, s := range all {
		pods[s.UID] = nil
	}
	for i := range m.nodes {
		for _, p := range m.nodes[i].surplus {
			if _, is := pods[p.Surplus.UID]; is {
				pods[p.Surplus.UID] = p
			}
		}
	}
	return pods
}

// leave takes surplus off its nodes and out of its queues' books.
func (m *Model) leave(victims []Surplus) {
	for i := range m.nodes {
		n := &m.nodes[i]
		n.surplus = slices.DeleteFunc(slices.Clone(n.surplus), func(p *Pod) bool {
			if !slices.ContainsFunc(victims, func(v Surplus) bool { return v.UID == p.Surplus.UID }) {
				return false
			}
			m.release(n.free, p)
			m.release(n.soon, p)
			q := m.queues[p.Queue]
			q.Allocated = maps.Clone(q.Allocated)
			for name, amount := range p.Requests {
				if q.Allocated != nil {
					q.Allocated[name] -= amount
				}
			}
			m.queues[p.Queue] = q
			return true
		})
	}
}

package capacity

import (
	"iter"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Variant is a gang on another model of accelerator.
type Variant struct {
	Model  string
	Shape  Shape
	Master *Shape
}

// unmodelled names what the gang asks that the model does not cover.
func (g *Gang) unmodelled() string {
	if g.Shape.Unmodelled == "" && g.Master != nil {
		return g.Master.Unmodelled
	}
	return g.Shape.Unmodelled
}

// asks is what the first n of the gang's workers ask together.
func (g *Gang) asks(n int32) Amounts {
	total := Amounts{}
	if g.Master != nil && n > 0 {
		maps.Copy(total, g.Master.Requests)
		n--
	}
	for name, amount := range g.Shape.Requests {
		total[name] += amount * int64(n)
	}
	return total
}

// resources yields what the gang's workers ask for, once each.
func (g *Gang) resources() iter.Seq[corev1.ResourceName] {
	return func(yield func(corev1.ResourceName) bool) {
		for name := range g.Shape.Requests {
			if !yield(name) {
				return
			}
		}
		if g.Master == nil {
			return
		}
		for name := range g.Master.Requests {
			if _, twice := g.Shape.Requests[name]; !twice && !yield(name) {
				return
			}
		}
	}
}

// variants yields the gang on each model of accelerator that it may choose, its own first.
func (g *Gang) variants() iter.Seq[*Gang] {
	return func(yield func(*Gang) bool) {
		if !yield(g) {
			return
		}
		for _, other := range g.Others {
			on := *g
			on.Model, on.Shape, on.Master = other.Model, other.Shape, other.Master
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
func (m *Model) room(g *Gang, a *ask, vector func(*node) []int64) int32 {
	if g.Master == nil {
		return a.room(vector)
	}
	master := m.compile(g.Master)
	seat, others := m.seat(&master, a, vector)
	if seat == nil {
		return 0
	}
	return others + 1
}

// hasRoom tells whether the whole gang fits into a vector of the nodes.
func (m *Model) hasRoom(g *Gang, a *ask, vector func(*node) []int64) bool {
	if g.Master != nil && a.room(vector) < g.Workers-1 {
		return false // Wherever worker 0 sits, it makes no room for the others.
	}
	return m.room(g, a, vector) >= g.Workers
}

// seat finds the node for worker 0 that leaves the most room for the others, and that room; nil when no node has room for it.
func (m *Model) seat(master, others *ask, vector func(*node) []int64) (*node, int32) {
	var best *node
	least, shared := int64(math.MaxInt64), m.takes(others)
	for _, n := range master.nodes {
		if master.count(vector(n), 1) == 0 {
			continue
		}
		var lost int64
		if shared[n.number] {
			after := slices.Clone(vector(n))
			master.take(after, 1)
			lost = int64(others.count(vector(n), math.MaxInt32)) - int64(others.count(after, math.MaxInt32))
		}
		if lost < least {
			best, least = n, lost
		}
	}
	if best == nil {
		return nil, 0
	}
	return best, int32(min(int64(others.room(vector))-least, math.MaxInt32-1))
}

// takes tells of each node, by its number, whether it takes the worker.
func (m *Model) takes(a *ask) []bool {
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

// victimsInTurn finds victims for a gang of two shapes: worker 0 gets its place first, then the others theirs. Each part is
// served by the fewest victims; together they may be more than the fewest. Whom it may take is what the whole gang may.
func (m *Model) victimsInTurn(g *Gang, yields func(types.NamespacedName) bool) []Surplus {
	rest, rank := m.clone(), m.ranks(g, yields)
	first, others := *g, *g
	first.Shape, first.Master, first.Workers = *g.Master, nil, 1
	others.Master, others.Workers = nil, g.Workers-1
	master, worker := rest.compile(&first.Shape), rest.compile(&others.Shape)
	chosen := rest.victims(&first, &master, rank)
	rest.leave(chosen)
	seat, _ := rest.seat(&master, &worker, soonOn)
	if seat == nil {
		return nil
	}
	master.occupy(seat, 1)
	if worker.room(soonOn) < others.Workers {
		more := rest.victims(&others, &worker, rank)
		if len(more) == 0 {
			return nil
		}
		chosen = append(chosen, more...)
	}
	slices.SortFunc(chosen, func(a, b Surplus) int { return a.compare(&b) })
	return chosen
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

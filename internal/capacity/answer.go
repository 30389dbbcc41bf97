package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Answer is what the model says of one waiting gang.
type Answer struct {
	// Unknown says what the gang asks that the model does not cover; everything else is zero then.
	Unknown string
	// Fits is true when the whole gang could be placed now, with nobody giving way.
	Fits bool
	// Largest is how many workers of the gang's shape could be placed together now.
	Largest int32
	// Free is what is free now of each resource that the gang asks, on nodes that would take its workers.
	Free Amounts
	// Short is what the whole gang asks beyond what is free or, where QueueLimit is true, beyond what its queue may still take;
	// empty for a gang that does not fit because what is free lies in pieces too small for its workers.
	Short Amounts
	// Nodes is how many nodes would take the gang's workers if they were empty of others, whatever their size.
	Nodes int
	// QueueLimit is true when the limit of the queue, not the room on nodes, is what keeps the gang from being larger.
	QueueLimit bool
}

// Ask answers for one gang.
func (m *Model) Ask(g *Gang) Answer {
	if g.Shape.Unmodelled != "" {
		return Answer{Unknown: g.Shape.Unmodelled}
	}
	a := m.compile(&g.Shape)
	answer := Answer{Free: m.freeOf(&a), Nodes: len(a.nodes)}
	limit, room := answer.Free, a.room()
	left, headroom := m.headroom(g)
	if answer.QueueLimit = headroom < room; answer.QueueLimit {
		limit = left
	}
	answer.Largest = min(room, headroom)
	answer.Fits = answer.Largest >= g.Workers
	answer.Short = shortfall(g, limit)
	return answer
}

// shortfall is what the whole gang asks beyond the limit.
func shortfall(g *Gang, limit Amounts) Amounts {
	short := Amounts{}
	for name, amount := range g.Shape.Requests {
		if missing := amount*int64(g.Workers) - limit[name]; missing > 0 {
			short[name] = missing
		}
	}
	return short
}

// Victims is the smallest set of surplus whose leaving makes the gang fit, of those that yield; empty when it fits already,
// when no set does, and when the model does not cover the ask.
func (m *Model) Victims(g *Gang, yields func(types.NamespacedName) bool) []Surplus {
	a := m.compile(&g.Shape)
	if g.Shape.Unmodelled != "" {
		return nil
	}
	return m.victims(g, &a, yields)
}

// room is how many workers fit on the nodes.
func (a *ask) room() int32 {
	var n int64
	for _, node := range a.nodes {
		n = min(n+int64(a.count(node.free, math.MaxInt32)), math.MaxInt32)
	}
	return int32(n)
}

// freeOf adds up what is free of the resources asked.
func (m *Model) freeOf(a *ask) Amounts {
	free := Amounts{}
	for name, amount := range a.shape.Requests {
		if amount <= 0 {
			continue
		}
		free[name] = 0
		if at, known := m.index[name]; known {
			for _, n := range a.nodes {
				free[name] += max(0, n.free[at])
			}
		}
	}
	return free
}

// headroom is what the gang's queue may still take of each resource that the gang asks, less than nothing where it has more than
// it may, and how many workers that is. As in
// Volcano's capacity plugin, a queue is limited by its capability and by what the guarantees of the others leave. A queue that
// does not exist takes nothing.
func (m *Model) headroom(g *Gang) (Amounts, int32) {
	q, exists := m.queues[g.Queue]
	left, workers := Amounts{}, int64(math.MaxInt32)
	if !exists {
		workers = 0
	}
	for name, amount := range g.Shape.Requests {
		if amount <= 0 {
			continue
		}
		limit := m.total[name] - m.guaranteed[name] + q.Guarantee[name]
		if capability, limited := q.Capability[name]; limited {
			limit = min(limit, capability)
		}
		left[name] = limit - q.Allocated[name]
		workers = min(workers, max(0, left[name])/amount)
	}
	return left, int32(workers)
}

// Order sorts waiting gangs by whose turn it is: the highest tier, then the oldest job, then by name.
func Order(gangs []*Gang) {
	slices.SortStableFunc(gangs, func(a, b *Gang) int { return a.before(b) })
}

func (g *Gang) before(o *Gang) int {
	return cmp.Or(cmp.Compare(o.Tier, g.Tier), g.Created.Compare(o.Created),
		cmp.Compare(g.Job.Namespace, o.Job.Namespace), cmp.Compare(g.Job.Name, o.Job.Name))
}

// clone is a model on whose nodes workers can be placed without changing this one.
func (m *Model) clone() *Model {
	c := *m
	c.nodes = slices.Clone(m.nodes)
	for i := range c.nodes {
		c.nodes[i].free = slices.Clone(m.nodes[i].free)
	}
	c.allowed, c.held = map[string][]*node{}, map[string][]*holder{}
	c.queues = maps.Clone(m.queues)
	return &c
}

// place takes the room of n workers of the gang, wherever they fit, and books them to its queue.
func (m *Model) place(g *Gang, n int32) {
	a := m.compile(&g.Shape)
	q := m.queues[g.Queue]
	q.Allocated = maps.Clone(q.Allocated)
	if q.Allocated == nil {
		q.Allocated = Amounts{}
	}
	for name, amount := range g.Shape.Requests {
		q.Allocated[name] += amount * int64(n)
	}
	m.queues[g.Queue] = q
	for _, node := range a.nodes {
		here := a.count(node.free, n)
		for i, at := range a.at {
			node.free[at] -= a.amount[i] * int64(here)
		}
		n -= here
	}
}

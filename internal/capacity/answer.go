package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
	// Leaving is what pods that leave hold of what the gang asks, where that is all it waits for: it does not fit now, and
	// does once they have gone. Nil for every other gang.
	Leaving Amounts
	// Nodes is how many nodes would take the gang's workers if they were empty of others, whatever their size.
	Nodes int
	// QueueLimit is true when the limit of the queue, not the room on nodes, is what keeps the gang from being larger.
	QueueLimit bool
}

// Ask answers for one gang.
func (m *Model) Ask(g *Gang) Answer {
	if unknown := g.unmodelled(); unknown != "" {
		return Answer{Unknown: unknown}
	}
	a := m.compile(&g.Shape)
	answer := Answer{Free: m.sum(g, &a, freeOn), Nodes: len(a.nodes)}
	limit, room := answer.Free, m.room(g, &a, freeOn)
	left, headroom := m.headroom(g)
	if answer.QueueLimit = headroom < room; answer.QueueLimit {
		limit = left
	}
	answer.Largest = min(room, headroom)
	answer.Fits = answer.Largest >= g.Workers
	answer.Short = shortfall(g, limit)
	if !answer.Fits && m.roomComes(g) {
		answer.Leaving = m.onItsWay(g, &a, answer.Free)
	}
	return answer
}

// onItsWay is what pods that leave hold of what the gang asks: on its nodes or, where none of that is there, in the books
// of its queue.
func (m *Model) onItsWay(g *Gang, a *ask, free Amounts) Amounts {
	sum := Amounts{}
	for name, amount := range m.sum(g, a, soonOn) {
		if more := amount - free[name]; more > 0 {
			sum[name] = more
		}
	}
	if len(sum) > 0 {
		return sum
	}
	for name := range free {
		if held := m.outgoing[g.Queue][name]; held > 0 {
			sum[name] = held
		}
	}
	return sum
}

// fits tells whether the whole gang could be placed now.
func (m *Model) fits(g *Gang) bool {
	if g.unmodelled() != "" {
		return false
	}
	_, headroom := m.headroom(g)
	if headroom < g.Workers {
		return false
	}
	a := m.compile(&g.Shape)
	return m.hasRoom(g, &a, freeOn)
}

// roomComes tells of a gang that does not fit now whether it will once those who leave have gone.
func (m *Model) roomComes(g *Gang) bool {
	if m.outgoing == nil || g.unmodelled() != "" {
		return false
	}
	a := m.compile(&g.Shape)
	return m.withinLimit(g, &crowd{}) && m.hasRoom(g, &a, soonOn)
}

// shortfall is what the whole gang asks beyond the limit.
func shortfall(g *Gang, limit Amounts) Amounts {
	short := Amounts{}
	for name, amount := range g.asks(g.Workers) {
		if missing := amount - limit[name]; missing > 0 {
			short[name] = missing
		}
	}
	return short
}

// Victims is the smallest set of surplus whose leaving makes the gang fit, of those that yield; empty when it fits already or
// will once those who leave have gone, when no set does, and when the model does not cover the ask. For a gang with workers of
// shapes of their own it is a set in which each is needed, though not always the smallest.
func (m *Model) Victims(g *Gang, yields func(types.NamespacedName) bool) []Surplus {
	if g.unmodelled() != "" {
		return nil
	}
	if len(g.Apart) > 0 {
		return m.victimsOfShapes(g, yields)
	}
	a := m.compile(&g.Shape)
	return m.victims(g, &a, m.ranks(g, yields))
}

// room is how many workers fit into a vector of the nodes.
func (a *ask) room(vector func(*node) []int64) int32 {
	var n int64
	for _, node := range a.nodes {
		n = min(n+int64(a.count(vector(node), math.MaxInt32)), math.MaxInt32)
	}
	return int32(n)
}

// sum adds up a vector of the nodes that take any of the gang's workers, by resource that the gang asks.
func (m *inventory) sum(g *Gang, a *ask, vector func(*node) []int64) Amounts {
	nodes := a.nodes
	if len(g.Apart) > 0 {
		nodes = slices.Clone(nodes)
		known := m.takes(a)
		for i := range g.Apart {
			for _, n := range m.compile(&g.Apart[i]).nodes {
				if !known[n.number] {
					known[n.number] = true
					nodes = append(nodes, n)
				}
			}
		}
	}
	sum := Amounts{}
	for name, amount := range g.asks(g.Workers) {
		if amount <= 0 {
			continue
		}
		var free int64
		if at, known := m.index[name]; known {
			for _, n := range nodes {
				free += max(0, vector(n)[at])
			}
		}
		sum[name] = free
	}
	return sum
}

// headroom is what the gang's queue may still take of each resource that the gang asks, less than nothing where it has
// more than it may, and how many workers that is. As in
// Volcano's capacity plugin, a queue is limited by its capability and by what the guarantees of the others leave. A queue that
// does not exist takes nothing.
func (m *Model) headroom(g *Gang) (Amounts, int32) {
	q, exists := m.queues[g.Queue]
	left, workers := Amounts{}, int64(math.MaxInt32)
	if !exists {
		workers = 0
	}
	for name, amount := range g.asks(g.Workers) {
		if amount <= 0 {
			continue
		}
		limit := m.total[name] - m.guaranteed[name] + q.Guarantee[name]
		if capability, limited := q.Capability[name]; limited {
			limit = min(limit, capability)
		}
		left[name] = limit - q.Allocated[name]
		workers = min(workers, g.within(name, max(0, left[name])))
	}
	return left, int32(workers)
}

// within is how many of the gang's workers an amount of one resource is enough for.
func (g *Gang) within(name corev1.ResourceName, amount int64) int64 {
	for i := range g.Apart {
		if amount -= g.Apart[i].Requests[name]; amount < 0 {
			return int64(i)
		}
	}
	if each := g.Shape.Requests[name]; each > 0 {
		return int64(len(g.Apart)) + amount/each
	}
	return math.MaxInt32
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
		c.nodes[i].free, c.nodes[i].soon = slices.Clone(m.nodes[i].free), slices.Clone(m.nodes[i].soon)
	}
	c.allowed, c.held = map[string][]*node{}, map[string][]Holder{}
	c.queues = maps.Clone(m.queues)
	return &c
}

// settle gives the gang its place in what is free or, if it does not fit there, in what will be once those who leave have gone,
// and tells whether it has one.
func (m *Model) settle(g *Gang) bool {
	switch {
	case m.fits(g):
		m.place(g, g.Workers, freeOn)
	case m.roomComes(g):
		m.place(g, g.Workers, soonOn)
	default:
		return false
	}
	return true
}

// place takes the room of n workers of the gang, wherever they fit into a vector of the nodes, and books them to its queue.
// What is free may become less than nothing by a gang that is placed where others still leave.
func (m *Model) place(g *Gang, n int32, vector func(*node) []int64) {
	a := m.compile(&g.Shape)
	m.book(g, n)
	for i := range g.Apart[:min(len(g.Apart), int(n))] {
		one := m.compile(&g.Apart[i])
		if seat := m.seat(&one, &a, vector); seat != nil {
			one.occupy(seat, 1)
		}
		n--
	}
	for _, node := range a.nodes {
		here := a.count(vector(node), n)
		a.occupy(node, here)
		n -= here
	}
}

// book adds n workers of the gang to the books of its queue.
func (m *Model) book(g *Gang, n int32) {
	q := m.queues[g.Queue]
	q.Allocated = maps.Clone(q.Allocated)
	if q.Allocated == nil {
		q.Allocated = Amounts{}
	}
	for name, amount := range g.asks(n) {
		q.Allocated[name] += amount
	}
	m.queues[g.Queue] = q
}

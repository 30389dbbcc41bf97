package capacity

import (
	"maps"
	"slices"
)

// crowd is pods of which is asked what there would be if they left as well as those who leave already.
type crowd struct {
	pods map[*Pod]bool
	// freed is what they hold on each node, by its number; nil for a node on which none of them is.
	freed [][]int64
	// books is what they hold in the books of each queue.
	books map[string]Amounts
}

// crowd gathers pods; each counts once.
func (m *inventory) crowd(pods []*Pod) *crowd {
	c := &crowd{pods: map[*Pod]bool{}, freed: make([][]int64, len(m.nodes)), books: map[string]Amounts{}}
	m.join(c, pods)
	return c
}

// clone is a crowd that can be changed without changing this one.
func (c *crowd) clone() *crowd {
	o := &crowd{pods: maps.Clone(c.pods), freed: slices.Clone(c.freed), books: maps.Clone(c.books)}
	for i := range o.freed {
		o.freed[i] = slices.Clone(o.freed[i])
	}
	for queue := range o.books {
		o.books[queue] = maps.Clone(o.books[queue])
	}
	return o
}

// join adds pods, and returns those that were not in the crowd.
func (m *inventory) join(c *crowd, pods []*Pod) (joined []*Pod) {
	for _, p := range pods {
		if !c.pods[p] {
			c.pods[p] = true
			m.tally(c, p, 1)
			joined = append(joined, p)
		}
	}
	return joined
}

// part takes pods out of the crowd.
func (m *inventory) part(c *crowd, pods []*Pod) {
	for _, p := range pods {
		delete(c.pods, p)
		m.tally(c, p, -1)
	}
}

// tally adds what a pod holds so many times.
func (m *inventory) tally(c *crowd, p *Pod, times int64) {
	if c.books[p.Queue] == nil {
		c.books[p.Queue] = Amounts{}
	}
	for name, amount := range p.Requests {
		c.books[p.Queue][name] += times * amount
	}
	i, known := m.number[p.Node]
	if !known {
		return
	}
	if c.freed[i] == nil {
		c.freed[i] = make([]int64, len(m.names))
	}
	for name, amount := range p.held() {
		if at, known := m.index[name]; known {
			c.freed[i][at] += times * amount
		}
	}
}

// without is the vector of a node from which the crowd has left. It is good until the next call.
func (m *inventory) without(c *crowd) func(*node) []int64 {
	sum := make([]int64, len(m.names))
	return func(n *node) []int64 {
		freed := c.freed[n.number]
		if freed == nil {
			return n.soon
		}
		for i := range sum {
			sum[i] = n.soon[i] + freed[i]
		}
		return sum
	}
}

// fitsWithout tells whether the gang fits once the crowd has left.
func (m *Model) fitsWithout(g *Gang, a *ask, c *crowd) bool {
	return m.withinLimit(g, c) && m.hasRoom(g, a, m.without(c))
}

// withinLimit tells whether the gang's queue may take it once the crowd has left.
func (m *Model) withinLimit(g *Gang, c *crowd) bool {
	left, workers := m.headroom(g)
	if workers >= g.Workers {
		return true
	}
	asks, books, leaving := g.asks(g.Workers), c.books[g.Queue], m.outgoing[g.Queue]
	for name, amount := range left {
		if amount+books[name]+leaving[name] < asks[name] {
			return false
		}
	}
	_, exists := m.queues[g.Queue]
	return exists
}

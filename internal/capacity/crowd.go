package capacity

import (
	"maps"
	"slices"
)

// crowd is a set of pods for the question "would the gang fit if these left too?". Sums are kept per node and per queue, so
// that pods can join and part at the cost of one pod, and a set that many gangs share is summed once.
type crowd struct {
	pods map[*Pod]bool
	// freed is what they hold on each node, by its number; nil for a node without any of them.
	freed [][]int64
	// books is what they hold of each queue's limit.
	books map[string]Amounts
	// version changes with whatever joins or parts, so that answers about the crowd can be cached.
	version int
}

// newCrowd gathers pods; each counts once.
func (m *inventory) newCrowd(pods []*Pod) *crowd {
	c := &crowd{pods: make(map[*Pod]bool, len(pods)), freed: make([][]int64, len(m.nodes)), books: map[string]Amounts{}}
	m.join(c, pods)
	return c
}

// clone is a copy that can be changed without changing this crowd.
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

// join adds pods, and returns those that were not in the crowd before.
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

// part removes pods from the crowd.
func (m *inventory) part(c *crowd, pods []*Pod) {
	for _, p := range pods {
		delete(c.pods, p)
		m.tally(c, p, -1)
	}
}

// tally adds what a pod holds to the sums, times 1 or -1.
func (m *inventory) tally(c *crowd, p *Pod, times int64) {
	c.version++
	if c.books[p.Queue] == nil {
		c.books[p.Queue] = Amounts{}
	}
	for name, amount := range p.Requests {
		c.books[p.Queue][name] += times * amount
	}
	if p.on == nil {
		return
	}
	freed := &c.freed[p.on.number]
	if *freed == nil {
		*freed = make([]int64, m.width)
	}
	if times > 0 {
		m.release(*freed, p)
	} else {
		m.subtract(*freed, p)
	}
}

// viewWithout is what there will be once the crowd has left too. A vector of it is valid until the next one is asked for.
func (m *inventory) viewWithout(c *crowd) view {
	sum, by := make([]int64, m.width), m.soonView()
	soon := by.gone
	by.gone = func(p *Pod) bool { return c.pods[p] || soon(p) }
	by.vector = func(n *node) []int64 {
		freed := c.freed[n.number]
		if freed == nil {
			return m.soonOn(n)
		}
		for i, soon := range m.soonOn(n) {
			sum[i] = soon + freed[i]
		}
		return sum
	}
	return by
}

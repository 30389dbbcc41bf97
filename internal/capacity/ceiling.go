package capacity

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ceilings caches the answers of CeilingFor by gangKey.
type ceilings struct {
	// empty is the model with nothing running.
	empty *Model
	known map[string]*Answer
}

// CeilingFor is nil for a gang that would fit if nothing else ran, on any model of accelerator that it may choose, and where
// "never" would be too strong: if its queue does not exist, or the model does not cover it or cannot judge it even then. For
// every other gang it is the answer of the empty cluster about its own model of accelerator. Callers must not change it.
func (m *Model) CeilingFor(g *Gang) (never *Answer) {
	if _, exists := m.queues[g.Queue]; !exists || g.beyondModel() != "" {
		return nil
	}
	if m.ceilings == nil {
		m.ceilings = &ceilings{empty: m.emptyModel(), known: map[string]*Answer{}}
	}
	for on := range g.variants() {
		answer := m.ceilings.answerFor(on)
		if answer == nil {
			return nil
		}
		// variants yields its own model of accelerator first, and the answer is about that one.
		never = cmp.Or(never, answer)
	}
	return never
}

// answerFor is the answer about a gang on its own model of accelerator; nil if it fits.
func (c *ceilings) answerFor(g *Gang) *Answer {
	key := g.gangKey() // Gangs that ask for the same share an answer.
	answer, asked := c.known[key]
	if !asked {
		if there := c.empty.Ask(g); !there.Fits && there.Unknown == "" {
			there.Oversize = c.empty.findOversize(g)
			answer = &there
		}
		c.known[key] = answer
	}
	return answer
}

// Oversize is the resource that makes one worker too large for every node on which it may run.
type Oversize struct {
	Resource corev1.ResourceName
	// Asks is what the worker asks for, and Largest what the largest of those nodes has in all; 0 if no node at all has it. CPU is
	// in thousandths of a core.
	Asks, Largest int64
}

// findOversize finds a worker of the gang that is too large for every node that its constraints allow; nil for none, and where
// they allow no node. Resources such as GPUs are looked at first.
func (m *inventory) findOversize(g *Gang) *Oversize {
	for _, s := range append([]Shape{g.Shape}, g.Apart...) {
		a := m.compile(&s)
		for _, name := range s.Requests.names() {
			o := Oversize{Resource: name, Asks: s.Requests[name]}
			at, known := m.index[name]
			switch {
			case o.Asks <= 0 || known && len(a.nodes) == 0:
				continue
			case known:
				for _, n := range a.nodes {
					o.Largest = max(o.Largest, n.all[at])
				}
			}
			if o.Asks > o.Largest {
				return &o
			}
		}
	}
	return nil
}

// emptyModel is the model with nothing running.
func (m *Model) emptyModel() *Model {
	e := m.clone()
	e.outgoing, e.occupancy = nil, newOccupancy(len(m.nodes), m.width)
	e.deserted = true
	for i := range e.nodes {
		n := &e.nodes[i]
		copy(e.freeOn(n), n.all)
		copy(e.soonOn(n), n.all)
	}
	for name, q := range e.queues {
		q.Allocated = nil
		e.queues[name] = q
	}
	return e.Model
}

// gangKey is a key of everything that decides whether the gang fits into an empty cluster.
func (g *Gang) gangKey() string {
	_, worker := g.Shape.keys()
	words := []string{g.Queue, strconv.Itoa(int(g.Workers)), g.beyondModel(), g.confinement(), worker}
	for i := range g.Apart {
		_, worker = g.Apart[i].keys()
		words = append(words, worker)
	}
	return strings.Join(words, "\n")
}

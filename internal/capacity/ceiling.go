package capacity

import (
	"strconv"
	"strings"
)

// ceilings caches the answers of CeilingFor by gangKey.
type ceilings struct {
	// empty is the model with nothing running.
	empty *Model
	known map[string]*Answer
}

// CeilingFor is nil for a gang that would fit if nothing else ran, with empty nodes and nothing allocated to its queue. For a
// gang that would not fit even then it is the answer of that empty model, in which Free is what the nodes have. It is also nil
// if "never" would be too strong: for a gang whose queue does not exist, and for one that the model does not cover. Gangs that
// ask for the same share an answer, which callers must not change.
func (m *Model) CeilingFor(g *Gang) *Answer {
	if _, exists := m.queues[g.Queue]; !exists || g.beyondModel() != "" {
		return nil
	}
	if m.ceilings == nil {
		m.ceilings = &ceilings{empty: m.emptyModel(), known: map[string]*Answer{}}
	}
	key := g.gangKey()
	answer, asked := m.ceilings.known[key]
	if !asked {
		if there := m.ceilings.empty.Ask(g); !there.Fits {
			answer = &there
		}
		m.ceilings.known[key] = answer
	}
	return answer
}

// emptyModel is the model with nothing running.
func (m *Model) emptyModel() *Model {
	e := m.clone()
	e.outgoing, e.occupancy = nil, newOccupancy(len(m.nodes), len(m.names))
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
	return e
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

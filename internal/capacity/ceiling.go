package capacity

import (
	"encoding/json"
	"slices"
)

// ceilings are what was asked of Ceiling already.
type ceilings struct {
	// empty is the model with nothing running.
	empty *Model
	known map[string]*Answer
}

// Ceiling is nil for a gang that would fit if nothing else ran: with empty nodes, and with the books of its queue empty,
// so that the queue is limited only by its capability and by what the guarantees of the others leave. For a gang that
// would not fit even then it is what the model says of it there, so that Free is what the nodes have. It is nil as well
// where never is too strong a word: for a gang of a queue that does not exist, and for one that the model does not cover.
// Gangs that ask for the same have the same answer, which callers must not change.
func (m *Model) Ceiling(g *Gang) *Answer {
	if _, exists := m.queues[g.Queue]; !exists || g.unmodelled() != "" {
		return nil
	}
	if m.ceilings == nil {
		m.ceilings = &ceilings{empty: m.empty(), known: map[string]*Answer{}}
	}
	key := g.size()
	answer, asked := m.ceilings.known[key]
	if !asked {
		if there := m.ceilings.empty.Ask(g); !there.Fits {
			answer = &there
		}
		m.ceilings.known[key] = answer
	}
	return answer
}

// empty is the model with nothing running.
func (m *Model) empty() *Model {
	e := m.clone()
	e.outgoing = nil
	for i := range e.nodes {
		n := &e.nodes[i]
		n.free, n.soon, n.surplus = slices.Clone(n.all), slices.Clone(n.all), nil
	}
	for name, q := range e.queues {
		q.Allocated = nil
		e.queues[name] = q
	}
	return e
}

// size writes down what decides whether the gang fits.
func (g *Gang) size() string {
	key, err := json.Marshal([]any{g.Queue, g.Workers, &g.Shape, g.Apart})
	if err != nil {
		return "" // Types of the API can always be written.
	}
	return string(key)
}

package capacity

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// reach is whom waiting gangs may take. Gangs are many and the kinds of them few: those that may take the same share one circle.
type reach struct {
	// leaves tells whether a job's surplus leaves at all.
	leaves  func(types.NamespacedName) bool
	circles map[string]*circle
}

// circle is whom the gangs of one kind may take.
type circle struct {
	// surplus leaves first.
	surplus *crowd
	// gangs may be stopped whole: the least important first, then the youngest.
	gangs []Running
	// everybody is all of them.
	everybody *crowd
}

func newReach(leaves func(types.NamespacedName) bool) *reach {
	return &reach{leaves: leaves, circles: map[string]*circle{}}
}

// of is the circle of a gang.
func (r *reach) of(m *Model, g *Gang) *circle {
	kind := m.kind(g)
	if r.circles[kind] == nil {
		r.circles[kind] = m.circle(g, r.leaves)
	}
	return r.circles[kind]
}

// kind writes down what decides whom the gang may take: see mayTake, spares and circle.
func (m *Model) kind(g *Gang) string {
	words := append([]string{g.Queue}, g.Preempts...)
	if m.underShare(g) {
		words = append(words, "")
		for _, name := range slices.Sorted(g.resources()) {
			words = append(words, string(name))
		}
	}
	return strings.Join(words, "\n")
}

func (m *Model) circle(g *Gang, leaves func(types.NamespacedName) bool) *circle {
	c := &circle{surplus: m.crowd(m.takeable(g, leaves))}
	for _, r := range m.running {
		if r.Queue == g.Queue && !r.Unmodelled && slices.Contains(g.Preempts, r.Tier) {
			c.gangs = append(c.gangs, r)
		}
	}
	slices.SortFunc(c.gangs, func(a, b Running) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), b.Created.Compare(a.Created),
			cmp.Compare(a.Job.Namespace, b.Job.Namespace), cmp.Compare(a.Job.Name, b.Job.Name))
	})
	c.everybody = c.surplus.clone()
	for _, r := range c.gangs {
		m.join(c.everybody, m.workers[r.Job])
	}
	return c
}

package capacity

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// reach caches what waiting gangs may take. A line may have 500 gangs, and each could take thousands of pods, but what a
// gang may take depends only on its kind: its queue, the tiers that it preempts, and what it asks for. Gangs of one kind share
// a circle.
type reach struct {
	// leaves returns whether a job's surplus leaves at all.
	leaves  func(types.NamespacedName) bool
	circles map[string]*circle
}

// circle is what the gangs of one kind may take.
type circle struct {
	// surplus leaves first.
	surplus *crowd
	// gangs may be stopped as a whole: the least important first, then who loses the least work, then the youngest.
	gangs []Running
	// everybody is the surplus and all these gangs; the same crowd as surplus for gangs that preempt none.
	everybody *crowd
}

func newReach(leaves func(types.NamespacedName) bool) *reach {
	return &reach{leaves: leaves, circles: map[string]*circle{}}
}

func (r *reach) circleOf(m *Model, g *Gang) *circle {
	kind := m.kindOf(g)
	if r.circles[kind] == nil {
		r.circles[kind] = m.newCircle(g, r.leaves)
	}
	return r.circles[kind]
}

// kindOf is a key of everything that decides what the gang may take: see takesOf, keepsShare and newCircle.
func (qs *quotas) kindOf(g *Gang) string {
	words := append([]string{g.Queue}, g.Preempts...)
	if qs.underShare(g) {
		words = append(words, "")
		for _, name := range slices.Sorted(g.resourceNames()) {
			words = append(words, string(name))
		}
	}
	return strings.Join(words, "\n")
}

// newCircle gathers what a gang may take.
func (m *Model) newCircle(g *Gang, leaves func(types.NamespacedName) bool) *circle {
	c := &circle{surplus: m.newCrowd(m.takeableSurplus(g, leaves))}
	if c.everybody = c.surplus; len(g.Preempts) == 0 {
		return c
	}
	for _, r := range m.running {
		if r.Queue == g.Queue && !r.Unmodelled && slices.Contains(g.Preempts, r.Tier) {
			c.gangs = append(c.gangs, r)
		}
	}
	slices.SortFunc(c.gangs, func(a, b Running) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.WorkAtStake, b.WorkAtStake), b.Created.Compare(a.Created),
			cmp.Compare(a.Job.Namespace, b.Job.Namespace), cmp.Compare(a.Job.Name, b.Job.Name))
	})
	c.everybody = c.surplus.clone()
	for _, r := range c.gangs {
		m.join(c.everybody, m.workers[r.Job])
	}
	return c
}

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

// circleOf is what a gang may take.
func (r *reach) circleOf(d demand) *circle {
	kind := d.kindOf(d.g)
	if r.circles[kind] == nil {
		r.circles[kind] = r.newCircle(d)
	}
	return r.circles[kind]
}

// mayServe is true if all surplus together is enough for a gang. It is much cheaper than FindVictims, which need not run for
// other gangs.
func (r *reach) mayServe(d demand) bool {
	return !d.isBeyond(d.g) && d.fitsWithout(r.circleOf(d).surplus)
}

// kindOf is a key of everything that decides what the gang may take: see takesOf, keepsShare and newCircle.
func (qs *quotas) kindOf(g *Gang) string {
	words := append([]string{g.Queue}, g.Preempts...)
	if qs.UnderShare(g) {
		words = append(words, "")
		for _, name := range slices.Sorted(g.resourceNames()) {
			words = append(words, string(name))
		}
	}
	return strings.Join(words, "\n")
}

// newCircle gathers what a gang may take.
func (r *reach) newCircle(d demand) *circle {
	c := &circle{surplus: d.newCrowd(d.takeableSurplus(d.g, r.leaves))}
	if c.everybody = c.surplus; len(d.g.Preempts) == 0 {
		return c
	}
	for _, job := range d.running {
		if job.Queue == d.g.Queue && !job.Unmodelled && slices.Contains(d.g.Preempts, job.Tier) {
			c.gangs = append(c.gangs, job)
		}
	}
	slices.SortFunc(c.gangs, func(a, b Running) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.WorkAtStake, b.WorkAtStake), b.Created.Compare(a.Created),
			cmp.Compare(a.Job.Namespace, b.Job.Namespace), cmp.Compare(a.Job.Name, b.Job.Name))
	})
	c.everybody = c.surplus.clone()
	for _, job := range c.gangs {
		d.join(c.everybody, d.workers[job.Job])
	}
	return c
}

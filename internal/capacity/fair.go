package capacity

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// Fair lets surplus of queues that have less than their share have places of surplus of queues that have more than theirs:
// Volcano takes back for gangs alone. Claims are surplus workers that wait, each as a gang of one; may tells of the
// surplus of a job whether it leaves for a claim. A queue gives no more than what it has beyond its share, and takes no
// more than what it misses, so that it is not taken back again. It returns who must leave, by job, and for which job, and
// the claims for which they do.
func (m *Model) Fair(
	claims []*Gang, may func(claim *Gang, job types.NamespacedName) bool,
) (leave map[types.NamespacedName]Verdict, served []*Gang) {
	rest, told := m.clone(), map[types.NamespacedName]Verdict{}
	rest.claimed = maps.Clone(m.claimed)
	for _, g := range ordered(claims) {
		if !rest.underShare(g) {
			continue
		}
		if settled := rest.settle(g); settled {
			continue
		}
		victims := rest.Victims(g, func(job types.NamespacedName) bool { return may(g, job) })
		for _, v := range victims {
			rest.vacate(v.UID)
			verdict := told[v.Job]
			verdict.GiveUp, verdict.To = append(verdict.GiveUp, v.UID), g.Job
			told[v.Job] = verdict
		}
		if len(victims) > 0 {
			rest.place(g, g.Workers, soonOn)
			served = append(served, g)
		}
	}
	return told, served
}

// vacate books surplus as leaving. In the books of its queue it stays, where what is claimed counts as given.
func (m *Model) vacate(surplus types.UID) {
	m.claimed[surplus] = true
	for i := range m.nodes {
		for _, p := range m.nodes[i].surplus {
			if p.Surplus.UID != surplus {
				continue
			}
			for name, amount := range p.held() {
				if at, known := m.index[name]; known {
					m.nodes[i].soon[at] += amount
				}
			}
			return
		}
	}
}

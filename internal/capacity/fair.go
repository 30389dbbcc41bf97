package capacity

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// ShareFairly moves places from surplus of queues above their share to waiting surplus of queues below theirs, which Volcano does
// for gangs alone. claims are the waiting workers, each as a gang of one, or of what completes a step of its job. may tells
// whether surplus of a job may leave for a claim. It returns which surplus must leave, by job and with the job that gets the
// place, and the claims that are served.
func (m *Model) ShareFairly(
	claims []*Gang, may func(claim *Gang, job types.NamespacedName) bool,
) (leave map[types.NamespacedName]Verdict, served []*Gang) {
	rest, told := m.clone(), map[types.NamespacedName]Verdict{}
	rest.claimed, rest.outgoing = maps.Clone(m.claimed), maps.Clone(m.outgoing)
	if rest.outgoing == nil {
		rest.outgoing = map[string]Amounts{} // More may leave than a claim needs, and its room is for the next.
	}
	for _, g := range orderedGangs(claims) {
		if !rest.UnderShare(g) {
			continue // Beyond its share it would have to give the place back.
		}
		if settled := rest.placeIfFits(g); settled {
			continue
		}
		victims := rest.FindVictims(g, func(job types.NamespacedName) bool { return may(g, job) })
		for _, v := range victims {
			rest.vacate(v.UID)
			verdict := told[v.Job]
			verdict.GiveUp, verdict.To = append(verdict.GiveUp, v.UID), g.Job
			told[v.Job] = verdict
		}
		if len(victims) > 0 {
			rest.placeWorkers(g, g.Workers, rest.soonView())
			served = append(served, g)
		}
	}
	return told, served
}

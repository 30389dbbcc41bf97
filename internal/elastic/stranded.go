package elastic

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// torchrun's workers meet at a store in worker 0. When that is lost, each of them must begin again, and one that succeeds instead
// does so in a training that worker 0 did not see to its end: its agent waited in the exit barrier for all, which went with the
// store. Such a worker is stranded, and is created anew, because the training that goes on needs it.

// strand notes which workers the losses of an evaluation have stranded: those that live and have not restarted since worker 0 was
// lost, and those that had succeeded before.
func (p *planner) strand(members []v1alpha1.Member, losses []loss) {
	at := slices.IndexFunc(losses, func(l loss) bool { return l.index == 0 && !l.completed })
	if at < 0 || !p.trainsAsOne() {
		return
	}
	together := func(m v1alpha1.Member) bool { // in the same incident, seen before
		return losses[at].inPlace && m.Incident == members[0].Incident
	}
	for i := 1; i < len(members); i++ {
		switch m := &members[i]; {
		case m.Completed:
			m.Left, m.Completed = false, false
		case m.UID != "" && !m.Lost:
			restarts := slices.ContainsFunc(losses, func(l loss) bool { return l.index == m.Index && l.inPlace })
			m.Stranded = !restarts && !together(*m)
		}
	}
}

// trainsAsOne tells whether the success of a worker means nothing without that of worker 0.
func (p *planner) trainsAsOne() bool {
	return p.spec.Rendezvous.Backend != v1alpha1.BackendNone && p.spec.SuccessPolicy != v1alpha1.SuccessPolicyAny
}

// stranded tells whether the success of a pod is that of a stranded worker.
func (p *planner) stranded(uid types.UID) bool {
	return slices.ContainsFunc(p.st.Members, func(m v1alpha1.Member) bool {
		return m.UID == uid && (m.Stranded || (m.Lost && !m.Left))
	})
}

package training

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// torchrun's workers meet at a store in worker 0. When that is lost, each of them must begin again, and one that succeeds instead
// does so in a training that worker 0 did not see to its end: its agent waited in the exit barrier for all, which went with the
// store. Such a worker is stranded, and is created anew, because the training that goes on needs it.

const (
	// exitBarrier is how long an agent waits for the others when its script has ended (exit_barrier_timeout in
	// torch/distributed/elastic/agent/server/api.py). Who succeeds later has met worker 0 again.
	exitBarrier = 5 * time.Minute
	// sameMoment is how long after worker 0 was lost its peers notice at most, and before the operator sees which was first.
	sameMoment = 10 * time.Second
)

// judgeSuccesses says of each success that the losses of an evaluation are whether it is a stranded worker's. Once worker 0 has
// succeeded, the training has come to its end, and nobody is stranded any more.
func (p *planner) judgeSuccesses(members []v1alpha1.Member, losses []loss) {
	ended := len(p.at) > 0 && p.at[0] != nil && p.at[0].Succeeded() || len(members) > 0 && members[0].Completed
	together := p.lossOfStore(losses) != nil
	for i := range members {
		if ended {
			members[i].StrandedTime = nil
		}
	}
	for i := range losses {
		l, m := &losses[i], &members[losses[i].index]
		marked := m.UID == l.uid && strandedAt(m, cmp.Or(l.ended, p.now))
		if l.completed && l.index > 0 && !l.again && (together || marked) {
			l.stranded, l.left = true, false
		}
	}
}

// strand marks the workers that the losses of an evaluation have stranded: those that live and have not restarted since worker 0
// was lost. Those that had succeeded before are called back.
func (p *planner) strand(members []v1alpha1.Member, losses []loss) {
	lost := p.lossOfStore(losses)
	if lost == nil {
		return
	}
	now := p.time()
	for i := 1; i < len(members); i++ {
		m := &members[i]
		own := slices.IndexFunc(losses, func(l loss) bool { return l.index == m.Index && (l.inPlace || l.again) })
		together := lost.inPlace && m.Incident == members[0].Incident && p.now.Sub(p.st.Incident.Time.Time) <= sameMoment
		switch {
		case own >= 0 || together: // It has restarted for that.
		case m.Completed:
			m.Left, m.Completed = false, false
		case m.UID != "" && !m.Lost:
			m.StrandedTime = &now
		}
	}
}

// lossOfStore is the loss of worker 0 with which the store went at which workers had met; nil if there is none.
func (p *planner) lossOfStore(losses []loss) *loss {
	at := slices.IndexFunc(losses, func(l loss) bool {
		return l.index == 0 && !l.completed && (l.inPlace || l.ran) && p.losesStore(&l)
	})
	if at < 0 || !p.trainsAsOne() {
		return nil
	}
	return &losses[at]
}

// losesStore tells whether the store went with a loss of worker 0: not if another container of its pod restarted.
func (p *planner) losesStore(l *loss) bool {
	containers := p.spec.Template.Spec.Containers
	return !l.inPlace || l.failure.Container == "" ||
		len(containers) == 0 || // The guard has yet to speak of that.
		l.failure.Container == containers[rendezvous.TrainerIndex(containers)].Name
}

// trainsAsOne tells whether the success of a worker means nothing without that of worker 0.
func (p *planner) trainsAsOne() bool {
	return rendezvous.Torchrun(p.o.Job) && p.spec.SuccessPolicy != v1alpha1.SuccessPolicyAny
}

// strandedAt tells whether a success of the member at a time is that of a stranded worker.
func strandedAt(m *v1alpha1.Member, at time.Time) bool {
	return m.StrandedTime != nil && at.Sub(m.StrandedTime.Time) <= exitBarrier
}

// trained tells whether a worker succeeded, and not as a stranded one.
func (p *planner) trained(w *podstate.Worker) bool {
	return w.Succeeded() && !p.stranded(w.UID, w.FinishedAt.Time)
}

// stranded tells whether the success of a pod, if it ended at a time, is that of a stranded worker: by its record, or by its mark
// before that is.
func (p *planner) stranded(uid types.UID, ended time.Time) bool {
	return p.trainsAsOne() && slices.ContainsFunc(p.st.Members, func(m v1alpha1.Member) bool {
		return m.UID == uid && ((m.Lost && !m.Left) || (!m.Lost && strandedAt(&m, cmp.Or(ended, p.now))))
	})
}

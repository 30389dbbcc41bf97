package losses

import (
	"cmp"
	"slices"
	"time"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// sameMoment is how long after worker 0 was lost its peers notice at most, and before the operator sees which was first.
const sameMoment = 10 * time.Second

// judgeSuccesses says of each success that the losses of an evaluation are whether it is a stranded worker's. Once worker 0 has
// succeeded, the training has come to its end, and nobody is stranded any more.
func (b *Books) judgeSuccesses(members []v1alpha1.Member, losses []loss) {
	ended := len(b.At) > 0 && b.At[0] != nil && b.At[0].Succeeded() || len(members) > 0 && members[0].Completed
	together := b.lossOfStore(losses) != nil
	for i := range members {
		if ended {
			members[i].StrandedTime = nil
		}
	}
	for i := range losses {
		l, m := &losses[i], &members[losses[i].index]
		marked := m.UID == l.uid && jobstate.StrandedAt(m, cmp.Or(l.ended, b.Now))
		if l.completed && l.index > 0 && !l.again && (together || marked) {
			l.stranded, l.left = true, false
		}
	}
}

// strand marks the workers that the losses of an evaluation have stranded: those that live and have not restarted since worker 0
// was lost. Those that had succeeded before are called back.
func (b *Books) strand(members []v1alpha1.Member, losses []loss) {
	lost := b.lossOfStore(losses)
	if lost == nil {
		return
	}
	now := b.Time()
	for i := 1; i < len(members); i++ {
		m := &members[i]
		own := slices.IndexFunc(losses, func(l loss) bool { return l.index == m.Index && (l.inPlace || l.again) })
		together := lost.inPlace && m.Incident == members[0].Incident && b.Now.Sub(b.Status.Incident.Time.Time) <= sameMoment
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
func (b *Books) lossOfStore(losses []loss) *loss {
	at := slices.IndexFunc(losses, func(l loss) bool {
		return l.index == 0 && !l.completed && (l.inPlace || l.ran) && b.losesStore(&l)
	})
	if at < 0 || !b.TrainsAsOne() {
		return nil
	}
	return &losses[at]
}

// losesStore tells whether the store went with a loss of worker 0: not if another container of its pod restarted.
func (b *Books) losesStore(l *loss) bool {
	containers := b.Spec.Template.Spec.Containers
	return !l.inPlace || l.failure.Container == "" ||
		len(containers) == 0 || // The guard has yet to speak of that.
		l.failure.Container == containers[rendezvous.TrainerIndex(containers)].Name
}

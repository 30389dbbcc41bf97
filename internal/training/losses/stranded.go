package losses

import (
	"cmp"
	"slices"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// sameMoment is within what time peers notice that worker 0 was lost. Their restarts may be seen before worker 0's.
const sameMoment = 10 * time.Second

// judgeSuccesses decides for each success among the losses whether it is that of a stranded worker.
func (b *Books) judgeSuccesses(members []member, losses []loss) {
	// Once worker 0 has succeeded the training is over, and a success is just that.
	ended := len(b.At) > 0 && b.At[0] != nil && b.At[0].HasSucceeded() || len(members) > 0 && members[0].HasCompleted()
	together := b.lossOfStore(losses) != nil
	for i := range members {
		if ended {
			members[i].setStranded(false)
		}
	}
	for i := range losses {
		l, m := &losses[i], &members[losses[i].index]
		marked := m.UID == l.uid && b.StrandedAt(&m.Member, cmp.Or(l.ended, b.Now))
		if l.completed && l.index > 0 && b.Spec.SeatOf(l.index).Role == nil && !l.again && (together || marked) {
			l.stranded, l.left = true, false
		}
	}
}

// markStranded marks the workers that may succeed without a finished training because worker 0 was lost: those that live and have
// not restarted since. Workers that succeeded before are needed again, so they are replaced.
func (b *Books) markStranded(members []member, losses []loss) {
	lost := b.lossOfStore(losses)
	if lost == nil {
		return
	}
	now := b.StatusTime()
	b.Status.StrandedTime = &now
	again := make([]bool, len(members))
	for i := range losses {
		again[losses[i].index] = again[losses[i].index] || losses[i].inPlace || losses[i].again
	}
	for i := 1; i < len(members); i++ {
		m := &members[i]
		together := lost.inPlace && m.incident == members[0].incident && b.Now.Sub(b.Status.Incident.Time.Time) <= sameMoment
		switch {
		case b.Spec.SeatOf(int32(i)).Role != nil: // It does not meet the others at the store.
		case again[i] || together: // It has restarted already, because of this loss.
		case m.HasCompleted():
			m.State = v1beta1.MemberLost
		case m.UID != "" && !m.IsLost():
			m.setStranded(true)
		}
	}
}

// lossOfStore is the loss of worker 0 that took the rendezvous store with it; nil if there was none.
func (b *Books) lossOfStore(losses []loss) *loss {
	at := slices.IndexFunc(losses, func(l loss) bool {
		return l.index == 0 && !l.completed && (l.inPlace || l.ran) && b.endsTraining(&l)
	})
	if at < 0 || !b.TrainsAsOne() {
		return nil
	}
	return &losses[at]
}

// endsTraining is true if a loss ended what the worker trained, and with worker 0 the rendezvous store. A restart of another
// container of its pod did not.
func (b *Books) endsTraining(l *loss) bool {
	containers := b.Spec.Template.Spec.Containers
	return !l.inPlace || l.failure.Container == "" ||
		len(containers) == 0 || // An invalid spec, which phase "find an obstacle" reports later.
		l.failure.Container == containers[rendezvous.TrainerIndex(containers)].Name
}

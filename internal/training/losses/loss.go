package losses

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// Told is the reason in status of an eviction by the operator itself.
const Told = "Told"

// Remainder is the reason in status of an eviction by the operator itself, of a worker that belongs to no whole step.
const Remainder = "Remainder"

// Unseen is the reason in status of an eviction that happened while the operator was down.
const Unseen = "Unseen"

// Deleted is the reason in status of the loss of a worker that somebody deleted.
const Deleted = "Deleted"

// loss says how a worker was lost, or that its containers restarted in place.
type loss struct {
	index int32
	uid   types.UID
	// ran is true for a worker that others may have trained with.
	ran bool
	// counted losses cost the job a restart. Evictions and lost nodes do not count: they are the cluster's doing.
	counted bool
	// completed is true for a worker that succeeded.
	completed bool
	// left is true for a worker that is not replaced in this attempt.
	left bool
	// stranded is true for a worker that succeeded only because worker 0 was lost: see jobstate.
	stranded bool
	// again is true if the worker's containers restarted in place before it was lost, and status does not know of that.
	again bool
	// ended is when the worker succeeded; zero if that is not known or it did not.
	ended time.Time
	// inPlace is true if the pod lives on and its containers restarted.
	inPlace bool
	// rejected losses are the fault of node, which refused the pod. node is known of failures too.
	rejected bool
	node     string
	// eviction is why surplus gave way and now waits for its cooldown; empty otherwise.
	eviction string
	// disruption is the reason of the pod's condition DisruptionTarget; empty for a pod without it.
	disruption string
	conditions []string
	failure    podstate.Failure
	progress   int64
	// hangs is true for workers that live and take no steps.
	hangs bool
}

// state is what the loss makes of its member.
func (l *loss) state() v1beta1.MemberState {
	switch {
	case l.completed && !l.stranded:
		return v1beta1.MemberCompleted
	case l.left:
		return v1beta1.MemberLeft
	}
	return v1beta1.MemberLost
}

// findLosses lists the losses that status does not know yet, given the known members by index.
func (b *Books) findLosses(members []member) []loss {
	var all []loss
	for i, w := range b.At[:b.Maximum] {
		known := &members[i]
		// The member's pod is gone, or another has its name: the loss of the old pod comes first.
		if known.UID != "" && !known.IsLost() && (w == nil || w.UID != known.UID) {
			l := b.judgeGone(known.Index, known.UID)
			l.ran = true
			all = append(all, l)
		}
		if w == nil || (w.UID == known.UID && known.IsLost()) {
			continue
		}
		if l, lost := b.judgeWorker(w, known); lost {
			all = append(all, l)
		}
	}
	// Pods that came and went between two writes of status, so that no member names them. If the index has a living member, the
	// departed pod was recorded before that one was created: this operator was paused and another one recorded it.
	for _, d := range b.Departures {
		if d.Index >= b.Maximum || !b.IsOfAttempt(d) || d.Disruption == "" {
			continue
		}
		if known := &members[d.Index]; known.UID != d.UID && (known.UID == "" || known.IsLost()) {
			all = append(all, b.judgeGone(d.Index, d.UID))
		}
	}
	return all
}

// judgeWorker says what happened to a worker whose pod exists, given the member that status knows at its index.
func (b *Books) judgeWorker(w *podstate.Worker, known *member) (loss, bool) {
	if l, lost := b.judgeLeaving(w); lost {
		l.ran = w.UID == known.UID || w.Phase == corev1.PodRunning
		l.again = w.UID == known.UID && w.ContainerRestarts > known.Restarts
		// A plain deletion of a pod that is no member is no loss: the operator itself may have deleted it for a lower maxReplicas.
		return l, w.UID == known.UID || w.Disruption != "" || !w.Terminating
	}
	restarted := w.ContainerRestarts > 0 && (w.UID != known.UID || w.ContainerRestarts > known.Restarts)
	return b.restartInPlace(w), restarted
}

// judgeLeaving says why a pod that exists is lost: first by whether it was asked to leave, and only then by how it ended. A
// kubelet reports a pod that was asked to leave as Succeeded or Failed too, by how its containers took the signal.
func (b *Books) judgeLeaving(w *podstate.Worker) (loss, bool) {
	l := loss{index: w.Index, uid: w.UID, conditions: w.Conditions, progress: w.Progress}
	switch {
	case w.Disruption != "" && (w.Terminating || w.HasEnded()):
		l.disruption, l.eviction = w.Disruption, b.surplusEviction(w.Index, w.Disruption)
	case w.Terminating:
		l.counted = true
	case w.HasFailed():
		l.counted, l.failure, l.rejected, l.node = !w.Rejected, w.Failure, w.Rejected, w.Node
	case w.HasSucceeded() && (w.Index > 0 || !b.MasterDecides()): // Otherwise it completes the job.
		l.completed, l.left, l.ended = true, true, w.FinishedAt.Time
	default:
		return loss{}, false
	}
	return l, true
}

// restartInPlace is the loss of a worker whose containers the kubelet restarted in their pod.
func (b *Books) restartInPlace(w *podstate.Worker) loss {
	return loss{
		index: w.Index, uid: w.UID, conditions: w.Conditions, progress: w.Progress, failure: w.Failure, counted: true, inPlace: true,
		node: w.Node,
	}
}

// judgeGone says why a pod that no longer exists was lost, by how it was last seen.
func (b *Books) judgeGone(index int32, uid types.UID) loss {
	l := loss{index: index, uid: uid}
	d := b.departed[uid]
	if d == nil {
		// It left while the operator was down. Surplus is assumed to have given way, which is what surplus is for. A core worker is
		// assumed to have been deleted by somebody, because Volcano never evicts a core.
		if l.counted = !b.IsSurplus(index); !l.counted {
			l.eviction, l.disruption = Unseen, Unseen
		}
		return l
	}
	l.conditions, l.progress = d.Conditions, d.Progress
	switch {
	case d.Disruption != "":
		l.disruption, l.eviction = d.Disruption, b.surplusEviction(index, d.Disruption)
	case d.Succeeded:
		l.completed, l.left = true, index > 0 || !b.MasterDecides()
	default:
		l.counted, l.rejected, l.node = !d.Rejected, d.Rejected, d.Node
		if d.Failed {
			l.failure = d.Failure
		}
	}
	return l
}

// surplusEviction is the reason if the worker is surplus, which then waits for a cooldown, and empty for core, which is replaced
// at once.
func (b *Books) surplusEviction(index int32, reason string) string {
	if b.IsSurplus(index) {
		return reason
	}
	return ""
}

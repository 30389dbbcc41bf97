package losses

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// Told is the reason of an eviction on the operator's own word.
const Told = "Told"

// Unseen is the reason of an eviction that happened while the operator was down.
const Unseen = "Unseen"

// deleted is the reason of a worker that somebody deleted.
const deleted = "Deleted"

// loss says how a worker was lost, or that its containers restarted in place.
type loss struct {
	index int32
	uid   types.UID
	// ran is true for a worker that others may have trained with.
	ran bool
	// counted losses cost a restart that is somebody's fault; evictions and lost nodes are nobody's.
	counted bool
	// completed is true for a worker that succeeded.
	completed bool
	// left is true for a worker that is not replaced in this attempt.
	left bool
	// stranded is true for a worker that succeeded in a training that worker 0 did not see to its end.
	stranded bool
	// again is true for a worker whose containers have restarted before it was lost, unseen.
	again bool
	// ended is when a worker that succeeded had; zero if that is not known.
	ended time.Time
	// inPlace is true when the pod lives on, and its containers restarted.
	inPlace bool
	// rejected losses are the fault of node, which did not take the pod.
	rejected bool
	node     string
	// eviction is why surplus gave way, which then waits for the cooldown; empty otherwise.
	eviction string
	// disruption is why the pod was asked to leave, if not by a plain deletion.
	disruption string
	conditions []string
	failure    podstate.Failure
	progress   int64
}

// losses lists the losses that status does not know yet, given the known members by index.
func (b *Books) losses(members []v1alpha1.Member) []loss {
	var all []loss
	for i, w := range b.At[:b.Maximum] {
		known := members[i]
		if known.UID != "" && !known.Lost && (w == nil || w.UID != known.UID) {
			l := b.gone(known.Index, known.UID)
			l.ran = true
			all = append(all, l)
		}
		if w == nil || (w.UID == known.UID && known.Lost) {
			continue
		}
		if l, lost := b.happened(w, known); lost {
			all = append(all, l)
		}
	}
	// Pods that came and went between two writes of status. One whose successor lives on record went before that was written:
	// another operator recorded it, while the one that remembers it was paused.
	for _, d := range b.Departures {
		if d.Index >= b.Maximum || !b.Current(d) || d.Disruption == "" {
			continue
		}
		if known := members[d.Index]; known.UID != d.UID && (known.UID == "" || known.Lost) {
			all = append(all, b.gone(d.Index, d.UID))
		}
	}
	return all
}

// happened judges a worker that is there, given the member that status knows at its index. Of a pod that status does not
// know, a plain deletion is not counted: it may have been our own, when maxReplicas was lowered.
func (b *Books) happened(w *podstate.Worker, known v1alpha1.Member) (loss, bool) {
	if l, lost := b.leaving(w); lost {
		l.ran = w.UID == known.UID || w.Phase == corev1.PodRunning
		l.again = w.UID == known.UID && w.ContainerRestarts > known.ContainerRestarts
		return l, w.UID == known.UID || w.Disruption != "" || !w.Terminating
	}
	restarted := w.ContainerRestarts > 0 && (w.UID != known.UID || w.ContainerRestarts > known.ContainerRestarts)
	return b.restarted(w), restarted
}

// leaving judges a pod that is still there: first by whether it was asked to leave, and only then by how it ended, because a
// kubelet lets a pod that was asked to leave end as Succeeded or Failed too.
func (b *Books) leaving(w *podstate.Worker) (loss, bool) {
	l := loss{index: w.Index, uid: w.UID, conditions: w.Conditions, progress: w.Progress}
	switch {
	case w.Disruption != "" && (w.Terminating || w.Ended()):
		l.disruption, l.eviction = w.Disruption, b.eviction(w.Index, w.Disruption)
	case w.Terminating:
		l.counted = true
	case w.Failed():
		l.counted, l.failure, l.rejected, l.node = !w.Rejected, w.Failure, w.Rejected, w.Node
	case w.Succeeded() && (w.Index > 0 || !b.MasterDecides()):
		l.completed, l.left, l.ended = true, true, w.FinishedAt.Time
	default:
		return loss{}, false
	}
	return l, true
}

// restarted is a worker whose containers restarted where they are, as a kubelet does when one exits with an error.
func (b *Books) restarted(w *podstate.Worker) loss {
	return loss{
		index: w.Index, uid: w.UID, conditions: w.Conditions, progress: w.Progress, failure: w.Failure, counted: true, inPlace: true,
	}
}

// gone judges a pod that is no longer there, by how it was last seen. If nobody saw it leave, because the operator was down,
// surplus is taken to have given way, which is what surplus does, and core to have been deleted, because nobody evicts it.
func (b *Books) gone(index int32, uid types.UID) loss {
	l := loss{index: index, uid: uid}
	seen := slices.IndexFunc(b.Departures, func(d podstate.Departure) bool { return d.UID == uid })
	if seen < 0 {
		if l.counted = !b.IsSurplus(index); !l.counted {
			l.eviction, l.disruption = Unseen, Unseen
		}
		return l
	}
	d := b.Departures[seen]
	l.conditions, l.progress = d.Conditions, d.Progress
	switch {
	case d.Disruption != "":
		l.disruption, l.eviction = d.Disruption, b.eviction(index, d.Disruption)
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

// eviction is the reason if the worker is surplus, which the cooldown holds back; core is replaced at once.
func (b *Books) eviction(index int32, reason string) string {
	if b.IsSurplus(index) {
		return reason
	}
	return ""
}

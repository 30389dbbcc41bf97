package losses

import (
	corev1 "k8s.io/api/core/v1"
)

// Why workers were taken away from a job, as metrics label it.
const (
	// EvictionScheduler: Volcano took the place for a waiting gang.
	EvictionScheduler = "scheduler"
	// EvictionTold: the operator deleted surplus for a waiting gang.
	EvictionTold = "operator"
	// EvictionRemainder: the operator deleted surplus that belonged to no whole step.
	EvictionRemainder = "remainder"
	// EvictionPreempted: the job was stopped whole for a gang of a more important tier.
	EvictionPreempted = "preempted"
	// EvictionNodeLost: the node was gone, out of service or unreachable.
	EvictionNodeLost = "node_lost"
	// EvictionDrained: somebody evicted the pod by the eviction API, as `kubectl drain` does.
	EvictionDrained = "drained"
	// EvictionKubelet: the kubelet ended the pod, for pressure on the node or its shutdown.
	EvictionKubelet = "kubelet"
	// EvictionRejected: a kubelet refused the pod, or refused to keep it when the kubelet restarted.
	EvictionRejected = "rejected"
	// EvictionUnseen: surplus left while the operator was down.
	EvictionUnseen = "operator_down"
	// EvictionOther: condition DisruptionTarget had another reason.
	EvictionOther = "other"
)

// Why a restart counts, as metrics label it.
const (
	// RestartError: a worker failed, or its containers exited with an error.
	RestartError = "error"
	// RestartOOM: a container was killed because it was out of memory.
	RestartOOM = "oom"
	// RestartDeleted: somebody deleted a worker.
	RestartDeleted = "deleted"
	// RestartHang: the workers lived and took no steps.
	RestartHang = "hang"
)

// EvictionReasons are all values of label reason of evictions.
func EvictionReasons() []string {
	return []string{
		EvictionScheduler, EvictionTold, EvictionRemainder, EvictionPreempted, EvictionNodeLost, EvictionDrained, EvictionKubelet,
		EvictionRejected,
		EvictionUnseen, EvictionOther,
	}
}

// RestartCauses are all values of label cause of restarts.
func RestartCauses() []string { return []string{RestartError, RestartOOM, RestartDeleted, RestartHang} }

// Loss is what a decision's status records about a worker for the first time: that it was taken away, or the restarts that it
// cost. It is handed to metrics with the decision, because the status drops its members when an attempt ends.
type Loss struct {
	// Worker is the index of the worker.
	Worker int32
	// Surplus is true for a worker beyond the core.
	Surplus bool
	// Eviction is why it was taken away, one of EvictionReasons; empty if it was not.
	Eviction string
	// Restarts is how many restarts status.restarts counts for it. Cause is one of RestartCauses.
	Restarts int32
	Cause    string
}

// noteEviction notes for metrics that a worker was taken away.
func (b *Books) noteEviction(index int32, reason string) {
	b.Counted = append(b.Counted, Loss{Worker: index, Surplus: b.IsSurplus(index), Eviction: evictionReason(reason)})
}

// noteRejection notes for metrics that a node rejected a worker.
func (b *Books) noteRejection(index int32) {
	b.Counted = append(b.Counted, Loss{Worker: index, Surplus: b.IsSurplus(index), Eviction: EvictionRejected})
}

// noteRestarts notes for metrics that status counts restarts.
func (b *Books) noteRestarts(l *loss, restarts int32) {
	cause := RestartError
	switch reason := l.oneWord(); {
	case l.hangs:
		cause = RestartHang
	case reason == oomKilled:
		cause = RestartOOM
	case reason == Deleted && !l.inPlace:
		cause = RestartDeleted
	}
	b.Counted = append(b.Counted, Loss{Worker: l.index, Surplus: b.IsSurplus(l.index), Restarts: restarts, Cause: cause})
}

const (
	// oomKilled is the reason of a container that was killed because it was out of memory (k8s.io/kubernetes/pkg/kubelet).
	oomKilled = "OOMKilled"
	// evictionAPI is the reason of condition DisruptionTarget of a pod that was evicted through the eviction API
	// (k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go).
	evictionAPI = "EvictionByEvictionAPI"
)

// evictionReason returns one of EvictionReasons for the reason of a pod's condition DisruptionTarget, which may be any word, or
// for a reason of this package.
func evictionReason(disruption string) string {
	switch disruption {
	case corev1.PodReasonPreemptionByScheduler:
		return EvictionScheduler
	case Told:
		return EvictionTold
	case Remainder:
		return EvictionRemainder
	case Unseen:
		return EvictionUnseen
	case reasonNodeGone, reasonTaint:
		return EvictionNodeLost
	case evictionAPI:
		return EvictionDrained
	case corev1.PodReasonTerminationByKubelet:
		return EvictionKubelet
	}
	return EvictionOther
}

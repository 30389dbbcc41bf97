package training

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Why a training changed its size.
const (
	// ResizeGrowth: surplus workers joined.
	ResizeGrowth = "growth"
	// ResizeEviction: surplus workers were taken away.
	ResizeEviction = "eviction"
	// ResizeTold: surplus workers left on the operator's word.
	ResizeTold = "told"
	// ResizeScale: maxReplicas was lowered.
	ResizeScale = "scale"
)

// Why workers were taken away from a job.
const (
	// EvictionScheduler: Volcano took the place for a waiting gang.
	EvictionScheduler = "scheduler"
	// EvictionTold: the operator told surplus to leave for a waiting gang.
	EvictionTold = "told"
	// EvictionPreempted: the job was stopped whole for a gang of a more important tier.
	EvictionPreempted = "preempted"
	// EvictionNodeLost: the node was gone, out of service or unreachable.
	EvictionNodeLost = "node_lost"
	// EvictionDrained: somebody evicted the pod by the eviction API, as `kubectl drain` does.
	EvictionDrained = "drained"
	// EvictionKubelet: the kubelet ended the pod, for pressure on the node or its shutdown.
	EvictionKubelet = "kubelet"
	// EvictionRejected: a kubelet did not take the pod, or did not keep it when it started again.
	EvictionRejected = "rejected"
	// EvictionUnseen: surplus left while the operator was down.
	EvictionUnseen = "unseen"
	// EvictionOther: condition DisruptionTarget had another reason.
	EvictionOther = "other"
)

// What cost a restart.
const (
	// RestartError: a worker failed, or its containers exited with an error.
	RestartError = "error"
	// RestartOOM: a container was killed because it was out of memory.
	RestartOOM = "oom"
	// RestartDeleted: somebody deleted a worker.
	RestartDeleted = "deleted"
)

// ResizeCauses are all causes of resizes that Measure knows.
func ResizeCauses() []string { return []string{ResizeGrowth, ResizeEviction, ResizeTold, ResizeScale} }

// EvictionReasons are all reasons of evictions that Measure knows.
func EvictionReasons() []string {
	return []string{
		EvictionScheduler, EvictionTold, EvictionPreempted, EvictionNodeLost, EvictionDrained, EvictionKubelet, EvictionRejected,
		EvictionUnseen, EvictionOther,
	}
}

// RestartCauses are all causes of restarts that Measure knows.
func RestartCauses() []string { return []string{RestartError, RestartOOM, RestartDeleted} }

// Loss is what a decision's status records of a worker for the first time: that it was taken away, or the restarts that it
// cost. Status itself does not keep it: an attempt that ends takes its members with it.
type Loss struct {
	// Worker is its index.
	Worker int32
	// Surplus is true for a worker beyond the core.
	Surplus bool
	// Eviction is why it was taken away, one of EvictionReasons; empty if it was not.
	Eviction string
	// Restarts is how many the job's status counts for it, and Cause is one of RestartCauses.
	Restarts int32
	Cause    string
}

// Measures are what one written status adds to the figures over all jobs.
type Measures struct {
	// Wait is the time from the job's creation until its core first ran; nil but once in a job's life.
	Wait *time.Duration
	// Placement is the time from the beginning of an attempt until Volcano had placed its whole core; nil but once in an attempt,
	// when its core first runs.
	Placement *time.Duration
	// Resizes are the causes for which a running training changed its size, each at most once.
	Resizes []string
	// Evictions are the workers that were taken away, by reason; Restarts those that status counts, by cause.
	Evictions, Restarts map[string]int
	// InVain is how many workers had left for a gang that was not placed in time, and InVainReason why they left, EvictionTold or
	// EvictionPreempted.
	InVain       int
	InVainReason string
}

// Measure tells what changed from one written status to the next, in figures, as Events does in words. Losses are those of the
// decision that made the status. It is called once per write, after the write succeeded.
func Measure(before, after *v1alpha1.ElasticTrainingJobStatus, losses []Loss) Measures {
	s := &story{before: before, after: after}
	m := Measures{Evictions: map[string]int{}, Restarts: map[string]int{}}
	if before.StartTime == nil && after.StartTime != nil {
		m.Wait = ptr.To(time.Duration(ptr.Deref(after.WaitSeconds, 0)) * time.Second)
	}
	if before.RunningSince == nil && after.RunningSince != nil && after.Attempt != nil {
		placed := after.RunningSince.Time
		if c := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionScheduled); c != nil && c.Status == metav1.ConditionTrue {
			placed = c.LastTransitionTime.Time
		}
		m.Placement = ptr.To(max(0, placed.Sub(after.Attempt.StartTime.Time)))
	}
	for _, l := range losses {
		if l.Eviction != "" {
			m.Evictions[l.Eviction]++
		}
		if l.Restarts > 0 {
			m.Restarts[l.Cause] += int(l.Restarts)
		}
	}
	if n := len(s.preempted(losses)); n > 0 {
		m.Evictions[EvictionPreempted] = n
	}
	if left := after.LeftInVain; left != nil && (before.LeftInVain == nil || !before.LeftInVain.Time.Equal(&left.Time)) {
		m.InVain, m.InVainReason = int(left.Workers), EvictionTold
		if left.Whole {
			m.InVainReason = EvictionPreempted
		}
	}
	m.Resizes = s.resizes(losses)
	return m
}

// preempted lists the workers that a job had when it was stopped for another, but for those that it lost in the same moment.
func (s *story) preempted(losses []Loss) []int32 {
	if stopped(s.before) || !stopped(s.after) || s.after.Preemption == nil {
		return nil
	}
	return living(s.before.Members, func(m v1alpha1.Member) bool {
		return !slices.ContainsFunc(losses, func(l Loss) bool { return l.Worker == m.Index })
	})
}

// resizes lists why a training that goes on changed its size. The loss of a core worker is none: the training stands still
// until it is back. Neither is a new attempt.
func (s *story) resizes(losses []Loss) []string {
	if s.before.RunningSince == nil || finished(s.after) || stopped(s.after) || s.newAttempt() {
		return nil
	}
	gone := func(is func(Loss) bool) bool {
		return slices.ContainsFunc(losses, func(l Loss) bool { return l.Surplus && l.Eviction != "" && is(l) })
	}
	var causes []string
	for _, resize := range []struct {
		cause    string
		happened bool
	}{
		{ResizeGrowth, len(s.joined()) > 0},
		{ResizeEviction, gone(func(l Loss) bool { return l.Eviction != EvictionTold })},
		{ResizeTold, gone(func(l Loss) bool { return l.Eviction == EvictionTold })},
		{ResizeScale, len(s.givenUp()) > 0},
	} {
		if resize.happened {
			causes = append(causes, resize.cause)
		}
	}
	return causes
}

// HeldGPUs is how many GPUs the ready workers of a job hold by its status, in its core and in its surplus. A job that is being
// deleted, or that another cluster runs, holds none here.
func HeldGPUs(job *v1alpha1.ElasticTrainingJob, st *v1alpha1.ElasticTrainingJobStatus) (core, surplus int64) {
	if st.Attempt == nil || job.DeletionTimestamp != nil || job.Spec.RunPolicy.ManagedBy == v1alpha1.ManagedByMultiKueue {
		return 0, 0
	}
	whole := st.Attempt.MinReplicas
	for _, m := range st.Members {
		if m.Lost && m.Index < st.Attempt.MinReplicas {
			whole--
		}
	}
	surplus = min(st.GPUs, int64(max(0, st.ReadyReplicas-whole))*trainingpod.GPUs(job, 1))
	return st.GPUs - surplus, surplus
}

// noteEviction notes, for those who count, that a worker was taken away.
func (p *planner) noteEviction(index int32, reason string) {
	p.d.Losses = append(p.d.Losses, Loss{Worker: index, Surplus: p.isSurplus(index), Eviction: evictionReason(reason)})
}

// noteRejection notes, for those who count, that a node rejected a worker.
func (p *planner) noteRejection(index int32) {
	p.d.Losses = append(p.d.Losses, Loss{Worker: index, Surplus: p.isSurplus(index), Eviction: EvictionRejected})
}

// noteRestarts notes, for those who count, restarts that status counts.
func (p *planner) noteRestarts(l *loss, restarts int32) {
	cause := RestartError
	switch reason := l.reason(); {
	case reason == oomKilled:
		cause = RestartOOM
	case reason == deleted && !l.inPlace:
		cause = RestartDeleted
	}
	p.d.Losses = append(p.d.Losses, Loss{Worker: l.index, Surplus: p.isSurplus(l.index), Restarts: restarts, Cause: cause})
}

const (
	// oomKilled is the reason of a container that was killed because it was out of memory (k8s.io/kubernetes/pkg/kubelet).
	oomKilled = "OOMKilled"
	// evictionAPI is the reason of condition DisruptionTarget of a pod that was evicted by the eviction API
	// (k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go).
	evictionAPI = "EvictionByEvictionAPI"
)

// evictionReason is one of EvictionReasons for the reason of a pod's condition DisruptionTarget, which may be any word, or for
// one of ours.
func evictionReason(disruption string) string {
	switch disruption {
	case corev1.PodReasonPreemptionByScheduler:
		return EvictionScheduler
	case told:
		return EvictionTold
	case unseen:
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

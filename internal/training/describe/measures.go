package describe

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Why a training changed its size.
const (
	// ResizeGrowth: surplus workers joined.
	ResizeGrowth = "growth"
	// ResizeEviction: surplus workers were taken away.
	ResizeEviction = "eviction"
	// ResizeTold: the operator deleted surplus workers for a waiting gang.
	ResizeTold = "operator"
	// ResizeScale: maxReplicas was lowered.
	ResizeScale = "scale"
)

// ResizeCauses are all causes of resizes that MeasureChange knows.
func ResizeCauses() []string { return []string{ResizeGrowth, ResizeEviction, ResizeTold, ResizeScale} }

// Measures are what one written status adds to the metrics of all jobs.
type Measures struct {
	// Wait is the time from the job's creation until its core first ran. It is set once in a job's life, else nil.
	Wait *time.Duration
	// Placement is the time from the beginning of an attempt until Volcano had placed its whole core. It is set once in an attempt,
	// when its core first runs, else nil.
	Placement *time.Duration
	// Resizes are the causes for which a running training changed its size, each at most once.
	Resizes []string
	// Evictions counts the workers that were taken away, by reason. Restarts counts those that status.restarts counts, by cause.
	Evictions, Restarts map[string]int
	// InVain is how many workers left for a gang that was not placed in time. InVainReason says why they left: EvictionTold or
	// EvictionPreempted of package losses.
	InVain       int
	InVainReason string
}

// MeasureChange says in figures what changed from one written status to the next, as EventsBetween does in words. counted are the
// losses of the decision that made the status. Call it once per write, after the write succeeded.
func MeasureChange(before, after *v1beta1.ElasticTrainingJobStatus, counted []losses.Loss) Measures {
	s := &story{before: before, after: after}
	m := Measures{Evictions: map[string]int{}, Restarts: map[string]int{}}
	if before.StartTime == nil && after.StartTime != nil {
		m.Wait = ptr.To(time.Duration(ptr.Deref(after.WaitSeconds, 0)) * time.Second)
	}
	if before.RunningSince == nil && after.RunningSince != nil && after.Attempt != nil {
		placed := after.RunningSince.Time
		// The core may have been placed long before it runs: pulling images is not Volcano's time.
		if c := meta.FindStatusCondition(after.Conditions, v1beta1.ConditionScheduled); c != nil && c.Status == metav1.ConditionTrue {
			placed = c.LastTransitionTime.Time
		}
		m.Placement = ptr.To(max(0, placed.Sub(after.Attempt.StartTime.Time)))
	}
	for _, l := range counted {
		if l.Eviction != "" {
			m.Evictions[l.Eviction]++
		}
		if l.Restarts > 0 {
			m.Restarts[l.Cause] += int(l.Restarts)
		}
	}
	if n := len(s.preemptedWorkers(counted)); n > 0 {
		m.Evictions[losses.EvictionPreempted] = n
	}
	if left := after.LeftInVain; left != nil && (before.LeftInVain == nil || !before.LeftInVain.Time.Equal(&left.Time)) {
		m.InVain, m.InVainReason = int(left.Workers), losses.EvictionTold
		if left.Whole {
			m.InVainReason = losses.EvictionPreempted
		}
	}
	m.Resizes = s.resizeCauses(counted)
	return m
}

// preemptedWorkers lists the workers that a job had when it was stopped for another. Those that it lost in the same evaluation
// are counted as losses already.
func (s *story) preemptedWorkers(counted []losses.Loss) []int32 {
	if jobstate.IsStopped(s.before) || !jobstate.IsStopped(s.after) || s.after.Preemption == nil {
		return nil
	}
	known := make(map[int32]bool, len(counted))
	for _, l := range counted {
		known[l.Worker] = true
	}
	return livingIndices(s.before.Members, func(m v1beta1.Member) bool { return !known[m.Index] })
}

// resizeCauses lists why a running training changed its size. The loss of a core worker is no resize, because the training stands
// still until it is back, and neither is a new attempt.
func (s *story) resizeCauses(counted []losses.Loss) []string {
	if s.before.RunningSince == nil || jobstate.IsFinished(s.after) || jobstate.IsStopped(s.after) || s.newAttempt() {
		return nil
	}
	gone := func(is func(losses.Loss) bool) bool {
		return slices.ContainsFunc(counted, func(l losses.Loss) bool { return l.Surplus && l.Eviction != "" && is(l) })
	}
	var causes []string
	for _, resize := range []struct {
		cause    string
		happened bool
	}{
		{ResizeGrowth, len(s.joinedWorkers()) > 0},
		{ResizeEviction, gone(func(l losses.Loss) bool { return l.Eviction != losses.EvictionTold })},
		{ResizeTold, gone(func(l losses.Loss) bool { return l.Eviction == losses.EvictionTold })},
		{ResizeScale, len(s.givenUp()) > 0},
	} {
		if resize.happened {
			causes = append(causes, resize.cause)
		}
	}
	return causes
}

// HeldGPUs returns how many GPUs the ready workers of a job hold by its status, in its core and in its surplus. It is 0 for a job
// that is being deleted. claimed is how many each worker has by resource claims.
func HeldGPUs(
	job *v1beta1.ElasticTrainingJob, st *v1beta1.ElasticTrainingJobStatus, claimed int64,
) (core, surplus int64) {
	if st.Attempt == nil || job.DeletionTimestamp != nil {
		return 0, 0
	}
	whole := st.Attempt.MinReplicas // The status counts ready workers without saying which: they are core first.
	for _, m := range st.Members {
		if m.IsLost() && m.Index < st.Attempt.MinReplicas {
			whole--
		}
	}
	surplus = min(st.Accelerators, int64(max(0, st.ReadyReplicas-whole))*(trainingpod.GPUs(job, trainingpod.Ordinary)+claimed))
	return st.Accelerators - surplus, surplus
}

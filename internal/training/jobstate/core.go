package jobstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// CoreRuns is true while every core worker runs or has succeeded.
func (s *State) CoreRuns() bool { return s.CountCore(WorkerRuns) == s.Minimum }

// CorePlaced is true while every core worker has its node.
func (s *State) CorePlaced() bool {
	placed := func(w *podstate.Worker) bool { return w.Scheduled && !w.Terminating && w.Phase != corev1.PodFailed }
	return s.CountCore(placed) == s.Minimum
}

// CountCore counts the core workers for which is returns true, and those that have succeeded and left.
func (s *State) CountCore(is func(*podstate.Worker) bool) int32 {
	var n int32
	for i, w := range s.At[:s.Minimum] {
		// The success of a stranded worker does not count: the training that goes on needs it again.
		if s.HasCompleted(int32(i)) || (w != nil && is(w) && (!w.HasSucceeded() || s.HasTrained(w))) {
			n++
		}
	}
	return n
}

// CannotStart is the first core worker that cannot start until somebody mends its image or its configuration; nil for none.
func (s *State) CannotStart() *podstate.Worker {
	for _, w := range s.At[:s.Minimum] {
		if w != nil && !w.Terminating && w.CannotStart() {
			return w
		}
	}
	return nil
}

// RangePending is true if the spec asks for a range of workers that the running attempt cannot follow.
func (s *State) RangePending() bool {
	return s.Spec.MinReplicas != s.Status.Attempt.MinReplicas || s.Wanted != s.Maximum
}

// ActiveTime is how long the job has trained, over all attempts.
func (s *State) ActiveTime() time.Duration {
	d := time.Duration(s.Status.ActiveSeconds) * time.Second
	if s.Status.RunningSince != nil {
		d += max(0, s.Now.Sub(s.Status.RunningSince.Time))
	}
	return d
}

// LostSince is since when work is lost if all workers go back to the last known checkpoint; nil if the core does not run, so that
// no work was done. Without a checkpoint it is when the core began to run.
func (s *State) LostSince() *metav1.Time { return WorkLostSince(s.Status, s.checkpointDone(), s.Now) }

// CheckpointTime is when worker 0 last saved a checkpoint in this attempt; zero if it told of none.
func (s *State) CheckpointTime() time.Time {
	return checkpointTimeOf(s.Status, s.checkpointDone(), s.Now)
}

// CheckpointAhead is for how long the number of the last checkpoint is not believed yet, because the clock of worker 0 is ahead;
// zero or less for no such time.
func (s *State) CheckpointAhead() time.Duration {
	return time.Unix(s.checkpointDone(), 0).Add(-aheadOfRequest).Sub(s.Now)
}

func (s *State) checkpointDone() int64 {
	if len(s.At) == 0 || s.At[0] == nil {
		return 0
	}
	return s.At[0].CheckpointDone
}

// WorkLostSince is LostSince of a job with that status, whose worker 0 has done as the number of its last checkpoint.
func WorkLostSince(st *v1beta1.ElasticTrainingJobStatus, done int64, now time.Time) *metav1.Time {
	if st.RunningSince == nil {
		return nil
	}
	since := *st.RunningSince
	if saved := checkpointTimeOf(st, done, now); saved.After(now) {
		since = metav1.NewTime(now.Truncate(time.Second))
	} else if !saved.IsZero() {
		since = metav1.NewTime(saved)
	}
	return &since
}

// aheadOfRequest is how far the number of a checkpoint may be ahead of the clock: by as much as that of a request is.
const aheadOfRequest = time.Second

// checkpointTimeOf is when the checkpoint of a number was saved; zero for a number that is not to be believed.
func checkpointTimeOf(st *v1beta1.ElasticTrainingJobStatus, done int64, now time.Time) time.Time {
	// The annotation is written by the user's program. A time in the future is not believed, and a time before the core ran belongs
	// to another attempt.
	saved := time.Unix(done, 0)
	if st.RunningSince == nil || !saved.After(st.RunningSince.Time) || saved.After(now.Truncate(time.Second).Add(aheadOfRequest)) {
		return time.Time{}
	}
	return saved
}

// CheckpointGrace is how long workers that must leave wait for a checkpoint; 0 for not at all.
func (s *State) CheckpointGrace() time.Duration {
	return time.Duration(ptr.Deref(s.Spec.Checkpoint.GraceSeconds, 0)) * time.Second
}

// WorkerRuns is true for a worker that runs, or has ended well.
func WorkerRuns(w *podstate.Worker) bool { return w.IsRunning() || w.HasSucceeded() }

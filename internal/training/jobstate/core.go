package jobstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// CoreRuns is true while every core worker runs. One that succeeded has left of its own will and is not missed.
func (s *State) CoreRuns() bool { return s.CountCore(WorkerRuns) == s.Minimum }

// CorePlaced is true while every core worker has its node.
func (s *State) CorePlaced() bool {
	placed := func(w *podstate.Worker) bool { return w.Scheduled && !w.Terminating && w.Phase != corev1.PodFailed }
	return s.CountCore(placed) == s.Minimum
}

// CountCore counts the core workers that pass is, and those that have succeeded and left.
func (s *State) CountCore(is func(*podstate.Worker) bool) int32 {
	var n int32
	for i, w := range s.At[:s.Minimum] {
		if s.HasCompleted(int32(i)) || (w != nil && is(w) && (!w.Succeeded() || s.Trained(w))) {
			n++
		}
	}
	return n
}

// CannotStart is the first core worker that waits for something that waiting alone does not mend.
func (s *State) CannotStart() *podstate.Worker {
	for _, w := range s.At[:s.Minimum] {
		if w != nil && !w.Terminating && w.CannotStart() {
			return w
		}
	}
	return nil
}

// RangePending tells whether the spec asks for what the attempt cannot give.
func (s *State) RangePending() bool {
	return s.Spec.MinReplicas != s.Status.Attempt.MinReplicas || s.Spec.MaxReplicas != s.Maximum
}

// Active is how long the job has trained, over all attempts.
func (s *State) Active() time.Duration {
	d := time.Duration(s.Status.ActiveSeconds) * time.Second
	if s.Status.RunningSince != nil {
		d += max(0, s.Now.Sub(s.Status.RunningSince.Time))
	}
	return d
}

// LostSince is since when work is lost if all workers go back to the last checkpoint that is known of now; nil if none was done.
// One of a time that has not come is not believed, but for the second by which the number of a request is ahead.
func (s *State) LostSince() *metav1.Time {
	if s.Status.RunningSince == nil {
		return nil
	}
	since := *s.Status.RunningSince
	if master := s.At[0]; master != nil {
		saved := time.Unix(master.CheckpointDone, 0)
		if now := s.Time(); saved.Equal(now.Add(time.Second)) {
			saved = now.Time
		}
		if saved.After(since.Time) && !saved.After(s.Now) {
			since = metav1.NewTime(saved)
		}
	}
	return &since
}

// CheckpointGrace is how long a worker that has to leave waits for a checkpoint; 0 for not at all.
func (s *State) CheckpointGrace() time.Duration {
	return time.Duration(ptr.Deref(s.Spec.Checkpoint.GraceSeconds, 0)) * time.Second
}

// WorkerRuns is true for a worker that runs, or has ended well.
func WorkerRuns(w *podstate.Worker) bool { return w.Running() || w.Succeeded() }

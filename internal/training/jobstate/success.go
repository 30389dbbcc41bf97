package jobstate

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// Stranded workers. torchrun's agents meet at a store in worker 0's agent, and wait for each other in an exit barrier when their
// scripts end. If worker 0 is lost, its store and the barrier go with it:
//
//	worker 0 is lost --> a running peer restarts with it: normal
//	                 \-> a peer in the barrier exits with success, though worker 0 has not finished: stranded
//
// A stranded worker is created again, because the training that continues needs it.

// ExitBarrier is how long an agent waits for the others when its script has ended (exit_barrier_timeout in
// torch/distributed/elastic/agent/server/api.py). A worker that succeeds later than that has met worker 0 again.
const ExitBarrier = 5 * time.Minute

// MasterDecides is true if the success of worker 0 alone completes the job.
func (s *State) MasterDecides() bool {
	policy := &s.Spec.SuccessPolicy
	if policy.IsMetByOne() || !policy.CountsWorker(0) {
		return false
	}
	for i := int32(1); i < s.Minimum; i++ {
		if policy.CountsWorker(i) {
			return false
		}
	}
	return true
}

// WhoSucceeded says how the success policy was met.
func (s *State) WhoSucceeded() string {
	switch {
	case s.Spec.SuccessPolicy.IsMetByOne():
		return "a worker succeeded"
	case s.MasterDecides():
		return "worker 0 succeeded"
	}
	return "every worker that successPolicy counts succeeded"
}

// CompletionGrace is how long workers may take to end once the success policy is met.
func (s *State) CompletionGrace() time.Duration {
	return time.Duration(ptr.Deref(s.Spec.SuccessPolicy.CompletionGraceSeconds,
		v1beta1.DefaultCompletionGraceSeconds)) * time.Second
}

// TrainsAsOne is true if a worker's success means nothing unless worker 0 succeeds too.
func (s *State) TrainsAsOne() bool {
	return rendezvous.UsesTorchrun(s.Spec) && !s.Spec.SuccessPolicy.IsMetByOne()
}

// HasTrained is true for a worker that succeeded and is not stranded.
func (s *State) HasTrained(w *podstate.Worker) bool {
	return w.HasSucceeded() && !s.IsStranded(w.Index, w.UID, w.FinishedAt.Time)
}

// IsStranded is true if the success of a worker's pod that ended at a time is that of a stranded worker: recorded as lost and
// to be replaced, or marked as stranded and not recorded yet. A zero time means now.
func (s *State) IsStranded(i int32, uid types.UID, ended time.Time) bool {
	m := memberOf(s.Status.Members, i, uid)
	return m != nil && s.TrainsAsOne() && ((m.IsLost() && !m.HasLeft()) || s.StrandedAt(m, cmp.Or(ended, s.Now)))
}

// StrandedAt is true if a success of the member at a time is that of a stranded worker. The mark fades with the exit barrier.
func (s *State) StrandedAt(m *v1beta1.Member, at time.Time) bool {
	since := s.Status.StrandedTime
	return m.IsStranded() && since != nil && at.Sub(since.Time) <= ExitBarrier
}

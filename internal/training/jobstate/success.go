package jobstate

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// torchrun's workers meet at a store in worker 0. When that is lost, each of them must begin again, and one that succeeds instead
// does so in a training that worker 0 did not see to its end: its agent waited in the exit barrier for all, which went with the
// store. Such a worker is stranded, and is created anew, because the training that goes on needs it.

// ExitBarrier is how long an agent waits for the others when its script has ended (exit_barrier_timeout in
// torch/distributed/elastic/agent/server/api.py). Who succeeds later has met worker 0 again.
const ExitBarrier = 5 * time.Minute

// MasterDecides tells whether the end of worker 0 is the end of the job.
func (s *State) MasterDecides() bool {
	return s.Spec.SuccessPolicy == v1alpha1.SuccessPolicyMaster || s.Spec.SuccessPolicy == ""
}

// WhoSucceeded says how the success policy was met.
func (s *State) WhoSucceeded() string {
	switch s.Spec.SuccessPolicy {
	case v1alpha1.SuccessPolicyAllWorkers:
		return "every worker of the core succeeded"
	case v1alpha1.SuccessPolicyAny:
		return "a worker succeeded"
	case v1alpha1.SuccessPolicyMaster:
	}
	return "worker 0 succeeded"
}

// CompletionGrace is how long workers may take to end once the success policy is met.
func (s *State) CompletionGrace() time.Duration {
	return time.Duration(ptr.Deref(s.Spec.RunPolicy.CompletionGraceSeconds, v1alpha1.DefaultCompletionGraceSeconds)) * time.Second
}

// TrainsAsOne tells whether the success of a worker means nothing without that of worker 0.
func (s *State) TrainsAsOne() bool {
	return rendezvous.Torchrun(s.Job) && s.Spec.SuccessPolicy != v1alpha1.SuccessPolicyAny
}

// Trained tells whether a worker succeeded, and not as a stranded one.
func (s *State) Trained(w *podstate.Worker) bool {
	return w.Succeeded() && !s.Stranded(w.UID, w.FinishedAt.Time)
}

// Stranded tells whether the success of a pod, if it ended at a time, is that of a stranded worker: by its record, or by its mark
// before that is.
func (s *State) Stranded(uid types.UID, ended time.Time) bool {
	return s.TrainsAsOne() && slices.ContainsFunc(s.Status.Members, func(m v1alpha1.Member) bool {
		return m.UID == uid && ((m.Lost && !m.Left) || (!m.Lost && StrandedAt(&m, cmp.Or(ended, s.Now))))
	})
}

// StrandedAt tells whether a success of the member at a time is that of a stranded worker.
func StrandedAt(m *v1alpha1.Member, at time.Time) bool {
	return m.StrandedTime != nil && at.Sub(m.StrandedTime.Time) <= ExitBarrier
}

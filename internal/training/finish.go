package training

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// completeIfSucceeded ends a job whose success policy is met, once the others have ended or had the completion grace for it:
// torchrun's agents wait for each other in an exit barrier. It reports whether the policy is met.
func (p *planner) completeIfSucceeded() (met bool) {
	if p.Status.MasterCompletionTime == nil {
		if !succeeded(p.State) {
			return false
		}
		if p.Status.StartTime == nil {
			p.markStarted()
		}
		t := p.Time()
		p.Status.MasterCompletionTime = &t
	}
	if p.MasterDecides() && p.books.CompletesOnSuccess() {
		p.end(v1alpha1.PhaseSucceeded, v1alpha1.ConditionSucceeded, v1alpha1.ReasonCompleted,
			"Worker 0 succeeded, which completes the job without waiting for the others.")
		return true
	}
	p.deleteLatecomers()
	deadline := p.Status.MasterCompletionTime.Add(p.CompletionGrace())
	switch failed, active := failedWorker(p.State), p.ActiveWorkers(); {
	case failed != nil:
		p.end(v1alpha1.PhaseFailed, v1alpha1.ConditionFailed, v1alpha1.ReasonWorkerFailed, fmt.Sprintf(
			"Worker %d failed%s within the completion grace of %s after %s, so it is not known whether "+
				"training is complete: read its log, and submit the job again if it is not.",
			failed.Index, failed.Failure, p.CompletionGrace(), p.WhoSucceeded()))
		p.Status.LastFailure = &v1alpha1.WorkerFailure{
			Worker: failed.Index, Time: p.Time(), ExitCode: failed.Failure.ExitCode,
			Reason: text.Clip(failed.Failure.Reason, 256), Message: text.Clip(failed.Failure.LastLine(), 1024),
		}
	case len(active) == 0:
		p.end(v1alpha1.PhaseSucceeded, v1alpha1.ConditionSucceeded, v1alpha1.ReasonCompleted,
			describe.Capital(p.WhoSucceeded())+" and every other worker has ended.")
	case !p.Now.Before(deadline):
		p.end(v1alpha1.PhaseSucceeded, v1alpha1.ConditionSucceeded, v1alpha1.ReasonCompleted, fmt.Sprintf(
			"%s, and no worker failed within the completion grace of %s; ended while still running: %s.",
			describe.Capital(p.WhoSucceeded()), p.CompletionGrace(), describe.List(active)))
	default:
		p.wake(min(deadline.Sub(p.Now), p.CompletionGrace()))
	}
	return true
}

// succeeded tells whether the success policy is met, also by pods that went before anybody planned.
func succeeded(s *jobstate.State) bool {
	ended := make([]bool, len(s.At))
	for i, w := range s.At {
		ended[i] = w != nil && s.Trained(w)
	}
	for _, m := range s.Status.Members {
		ended[m.Index] = ended[m.Index] || m.Completed
	}
	for _, d := range s.Departures {
		if d.Succeeded && s.Current(d) && int(d.Index) < len(ended) && !s.Stranded(d.UID, s.Now) {
			ended[d.Index] = ended[d.Index] || s.At[d.Index] == nil
		}
	}
	switch s.Spec.SuccessPolicy {
	case v1alpha1.SuccessPolicyAllWorkers:
		return !slices.Contains(ended[:s.Minimum], false)
	case v1alpha1.SuccessPolicyAny:
		return slices.Contains(ended, true)
	case v1alpha1.SuccessPolicyMaster:
	}
	return len(ended) > 0 && ended[0]
}

// deleteLatecomers removes workers that never took part: those that wait, and those that Volcano placed where finished workers
// were, which could only look for a rendezvous that is over.
func (p *planner) deleteLatecomers() {
	for w := range p.AttemptWorkers() {
		if !w.Ended() && !p.RecordedMember(w) {
			p.delete(w)
		}
	}
}

// failedWorker is the first worker that failed by itself after worker 0 succeeded. Failures that were already recorded as
// losses happened before. Where any success will do, none of them matters.
func failedWorker(s *jobstate.State) *podstate.Worker {
	if s.Spec.SuccessPolicy == v1alpha1.SuccessPolicyAny {
		return nil
	}
	for w := range s.AttemptWorkers() {
		if w.Failed() && w.Index < s.Maximum && !s.RecordedLost(w) {
			return w
		}
	}
	return nil
}

// end ends the job with a condition. Its attempt, and what it was stopped or gave way for, are over.
func (p *planner) end(phase v1alpha1.JobPhase, condition, reason, message string) {
	t := p.Time()
	p.Status.Phase, p.Status.CompletionTime = phase, &t
	p.Status.Preemption = nil
	if p.Status.Attempt != nil {
		p.closeAttempt()
	}
	p.Status.Elasticity = nil
	p.Conditions().Set(condition, metav1.ConditionTrue, reason, message)
}

package training

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// completeIfSucceeded ends a job whose success policy is met, once the other workers have ended or the completion grace is over.
// They need that time: torchrun's agents wait for each other in an exit barrier. It reports whether the policy is met.
func (p *planner) completeIfSucceeded() (met bool) {
	if p.Status.MasterCompletionTime == nil {
		if !meetsSuccessPolicy(p.State) {
			return false
		}
		if p.Status.StartTime == nil {
			p.markStarted()
		}
		t := p.StatusTime()
		p.Status.MasterCompletionTime = &t
	}
	if p.MasterDecides() && p.books.CompletesOnSuccess() {
		p.endJob(v1beta1.PhaseSucceeded, v1beta1.ConditionSucceeded, v1beta1.ReasonCompleted,
			"Worker 0 succeeded, which completes the job without waiting for the others.")
		return true
	}
	p.deleteLatecomers()
	deadline := p.Status.MasterCompletionTime.Add(p.CompletionGrace())
	switch failed, active := failedWorker(p.State), p.ActiveWorkers(); {
	case failed != nil:
		p.endJob(v1beta1.PhaseFailed, v1beta1.ConditionFailed, v1beta1.ReasonWorkerFailed, fmt.Sprintf(
			"%s, but worker %d failed%s within the completion grace of %s, so training may be incomplete. "+
				"Read the worker's log, and submit the job again if it is.",
			describe.CapitalizeFirst(p.WhoSucceeded()), failed.Index, failed.Failure, p.CompletionGrace()))
		p.Status.LastFailure = &v1beta1.WorkerFailure{
			Worker: failed.Index, Time: p.StatusTime(), ExitCode: failed.Failure.ExitCode,
			Reason: text.ClipLine(failed.Failure.Reason, 256), Message: text.ClipLine(failed.Failure.LastLine(), 1024),
		}
	case len(active) == 0:
		p.endJob(v1beta1.PhaseSucceeded, v1beta1.ConditionSucceeded, v1beta1.ReasonCompleted,
			describe.CapitalizeFirst(p.WhoSucceeded())+" and every other worker has ended.")
	case !p.Now.Before(deadline):
		p.endJob(v1beta1.PhaseSucceeded, v1beta1.ConditionSucceeded, v1beta1.ReasonCompleted, fmt.Sprintf(
			"%s, and no worker failed within the completion grace of %s. Still running when it ended: %s.",
			describe.CapitalizeFirst(p.WhoSucceeded()), p.CompletionGrace(), describe.WorkersNamed(active)))
	default:
		// By a clock that was set back since, the deadline may be farther away than the whole grace.
		p.requeueAfter(min(deadline.Sub(p.Now), p.CompletionGrace()))
	}
	return true
}

// meetsSuccessPolicy is true once enough of the workers that count have succeeded.
func meetsSuccessPolicy(s *jobstate.State) bool {
	ended := make([]bool, len(s.At))
	for i, w := range s.At {
		ended[i] = w != nil && s.HasTrained(w)
	}
	for _, m := range s.Status.Members {
		ended[m.Index] = ended[m.Index] || m.HasCompleted()
	}
	// A pod may succeed and be deleted between two evaluations; the watch remembers it until a status records it.
	for _, d := range s.Departures {
		if d.Succeeded && s.IsOfAttempt(d) && int(d.Index) < len(ended) && !s.IsStranded(d.Index, d.UID, s.Now) {
			ended[d.Index] = ended[d.Index] || s.At[d.Index] == nil
		}
	}
	if s.Spec.SuccessPolicy.IsMetByOne() {
		for i, done := range ended {
			if done && s.Spec.SuccessPolicy.CountsWorker(int32(i)) {
				return true
			}
		}
		return false
	}
	met := false // A policy whose targets are all beyond the core is never met.
	for i, done := range ended[:s.Minimum] {
		if s.Spec.SuccessPolicy.CountsWorker(int32(i)) {
			if !done {
				return false
			}
			met = true
		}
	}
	return met
}

// deleteLatecomers deletes workers that never trained. Volcano may have just placed them on GPUs that finished workers left;
// they could only look for a rendezvous that is over.
func (p *planner) deleteLatecomers() {
	for w := range p.AttemptWorkers() {
		if !w.HasEnded() && !p.RecordedMember(w) {
			p.deleteWorker(w)
		}
	}
}

// failedWorker is the first worker that failed after the success policy was met; nil if none did. Failures recorded as losses
// happened before.
func failedWorker(s *jobstate.State) *podstate.Worker {
	if s.Spec.SuccessPolicy.IsMetByOne() {
		return nil // One success is all the user asked for.
	}
	for w := range s.AttemptWorkers() {
		if w.HasFailed() && w.Index < s.Maximum && !s.RecordedLost(w) {
			return w
		}
	}
	return nil
}

// endJob gives the job its final phase and condition, and closes its attempt.
func (p *planner) endJob(phase v1beta1.JobPhase, condition, reason, message string) {
	t := p.StatusTime()
	p.Status.Phase, p.Status.CompletionTime = phase, &t
	p.Status.Preemption = nil
	if p.Status.Attempt != nil {
		p.closeAttempt()
	}
	p.forgetSurplus()
	p.ConditionWriter().Set(condition, metav1.ConditionTrue, reason, message)
}

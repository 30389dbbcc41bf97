package training

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// completing handles a job whose success policy is met: the others have the completion grace to end, because torchrun's agents
// wait for each other in an exit barrier. It returns false while the policy is not met.
func (p *planner) completing() bool {
	if p.st.MasterCompletionTime == nil {
		if !p.succeeded() {
			return false
		}
		if p.st.StartTime == nil {
			p.markStarted()
		}
		t := p.time()
		p.st.MasterCompletionTime = &t
	}
	if p.masterDecides() {
		if r := p.rule(occurrence{event: v1alpha1.OnTaskCompleted}); r.action == v1alpha1.ActionCompleteJob {
			p.end(v1alpha1.PhaseSucceeded, v1alpha1.ConditionSucceeded, v1alpha1.ReasonCompleted,
				"Worker 0 succeeded, which completes the job without waiting for the others.")
			return true
		}
	}
	p.deleteLatecomers()
	deadline := p.st.MasterCompletionTime.Add(p.completionGrace())
	switch failed, active := p.failedWorker(), p.activeWorkers(); {
	case failed != nil:
		p.end(v1alpha1.PhaseFailed, v1alpha1.ConditionFailed, v1alpha1.ReasonWorkerFailed, fmt.Sprintf(
			"Worker %d failed%s within the completion grace of %s after %s, so it is not known whether "+
				"training is complete: read its log, and submit the job again if it is not.",
			failed.Index, failed.Failure, p.completionGrace(), p.whoSucceeded()))
		p.st.LastFailure = &v1alpha1.WorkerFailure{
			Worker: failed.Index, Time: p.time(), ExitCode: failed.Failure.ExitCode,
			Reason: text.Clip(failed.Failure.Reason, 256), Message: text.Clip(failed.Failure.LastLine(), 1024),
		}
	case len(active) == 0:
		p.end(v1alpha1.PhaseSucceeded, v1alpha1.ConditionSucceeded, v1alpha1.ReasonCompleted,
			capital(p.whoSucceeded())+" and every other worker has ended.")
	case !p.now.Before(deadline):
		p.end(v1alpha1.PhaseSucceeded, v1alpha1.ConditionSucceeded, v1alpha1.ReasonCompleted, fmt.Sprintf(
			"%s, and no worker failed within the completion grace of %s; ended while still running: %s.",
			capital(p.whoSucceeded()), p.completionGrace(), list(active)))
	default:
		p.wake(min(deadline.Sub(p.now), p.completionGrace()))
	}
	return true
}

// masterDecides tells whether the end of worker 0 is the end of the job.
func (p *planner) masterDecides() bool {
	return p.spec.SuccessPolicy == v1alpha1.SuccessPolicyMaster || p.spec.SuccessPolicy == ""
}

// whoSucceeded says how the success policy was met.
func (p *planner) whoSucceeded() string {
	switch p.spec.SuccessPolicy {
	case v1alpha1.SuccessPolicyAllWorkers:
		return "every worker of the core succeeded"
	case v1alpha1.SuccessPolicyAny:
		return "a worker succeeded"
	case v1alpha1.SuccessPolicyMaster:
	}
	return "worker 0 succeeded"
}

// succeeded tells whether the success policy is met, also by pods that went before anybody planned.
func (p *planner) succeeded() bool {
	ended := make([]bool, len(p.at))
	for i, w := range p.at {
		ended[i] = w != nil && p.trained(w)
	}
	for _, m := range p.st.Members {
		ended[m.Index] = ended[m.Index] || m.Completed
	}
	for _, d := range p.o.Departures {
		if d.Succeeded && p.current(d) && int(d.Index) < len(ended) && !p.stranded(d.UID, p.now) {
			ended[d.Index] = ended[d.Index] || p.at[d.Index] == nil
		}
	}
	switch p.spec.SuccessPolicy {
	case v1alpha1.SuccessPolicyAllWorkers:
		return !slices.Contains(ended[:p.minimum], false)
	case v1alpha1.SuccessPolicyAny:
		return slices.Contains(ended, true)
	case v1alpha1.SuccessPolicyMaster:
	}
	return len(ended) > 0 && ended[0]
}

// capital begins a sentence.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// deleteLatecomers removes workers that never took part: those that wait, and those that Volcano placed where finished workers
// were, which could only look for a rendezvous that is over.
func (p *planner) deleteLatecomers() {
	for w := range p.workers() {
		if !w.Ended() && !p.recordedMember(w) {
			p.delete(w)
		}
	}
}

func (p *planner) completionGrace() time.Duration {
	return time.Duration(ptr.Deref(p.spec.RunPolicy.CompletionGraceSeconds, v1alpha1.DefaultCompletionGraceSeconds)) * time.Second
}

// failedWorker is the first worker that failed by itself after worker 0 succeeded. Failures that were already recorded as
// losses happened before. Where any success will do, none of them matters.
func (p *planner) failedWorker() *podstate.Worker {
	if p.spec.SuccessPolicy == v1alpha1.SuccessPolicyAny {
		return nil
	}
	for w := range p.workers() {
		if w.Failed() && w.Index < p.maximum && !p.recordedLost(w) {
			return w
		}
	}
	return nil
}

// activeWorkers lists the workers that take part and run. Latecomers do not hold up the end.
func (p *planner) activeWorkers() []int32 {
	var active []int32
	for w := range p.workers() {
		if w.Phase == corev1.PodRunning && p.recordedMember(w) {
			active = append(active, w.Index)
		}
	}
	return active
}

func (p *planner) end(phase v1alpha1.JobPhase, condition, reason, message string) {
	t := p.time()
	p.st.Phase, p.st.CompletionTime = phase, &t
	p.st.Preemption = nil
	if p.st.Attempt != nil {
		p.closeAttempt()
	}
	p.st.Elasticity = nil
	p.set(condition, metav1.ConditionTrue, reason, message)
}

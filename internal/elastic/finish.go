package elastic

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// completing handles a job whose worker 0 succeeded: the others have the completion grace to end, because torchrun's agents
// wait for each other in an exit barrier. It returns false while worker 0 has not succeeded.
func (p *planner) completing() bool {
	if p.st.MasterCompletionTime == nil {
		if !p.masterSucceeded() {
			return false
		}
		if p.st.StartTime == nil {
			p.markStarted()
		}
		t := p.time()
		p.st.MasterCompletionTime = &t
	}
	p.deleteLatecomers()
	deadline := p.st.MasterCompletionTime.Add(p.completionGrace())
	switch failed, active := p.failedWorker(), p.activeWorkers(); {
	case failed != nil:
		p.end(v1alpha1.PhaseFailed, v1alpha1.ConditionFailed, v1alpha1.ReasonWorkerFailed, fmt.Sprintf(
			"Worker %d failed (%s) within the completion grace of %s after worker 0 succeeded, so it is not known whether "+
				"training is complete: read its log, and submit the job again if it is not.",
			failed.Index, describe(failed), p.completionGrace()))
		p.st.LastFailure = &v1alpha1.WorkerFailure{
			Worker: failed.Index, Time: p.time(), Reason: clip(failed.Reason, 256), Message: clip(failed.Message, 1024),
		}
	case len(active) == 0:
		p.end(v1alpha1.PhaseSucceeded, v1alpha1.ConditionSucceeded, v1alpha1.ReasonCompleted,
			"Worker 0 succeeded and every other worker has ended.")
	case !p.now.Before(deadline):
		p.end(v1alpha1.PhaseSucceeded, v1alpha1.ConditionSucceeded, v1alpha1.ReasonCompleted, fmt.Sprintf(
			"Worker 0 succeeded, and no worker failed within the completion grace of %s; ended while still running: %s.",
			p.completionGrace(), list(active)))
	default:
		p.wake(min(deadline.Sub(p.now), p.completionGrace()))
	}
	return true
}

// masterSucceeded looks at worker 0, also at one whose pod went before anybody planned.
func (p *planner) masterSucceeded() bool {
	if master := p.at[0]; master != nil {
		return master.Succeeded()
	}
	return slices.ContainsFunc(p.o.Departures, func(d Departure) bool { return d.Index == 0 && d.Succeeded && p.current(d) })
}

// deleteLatecomers removes workers that never took part: those that wait, and those that Volcano placed where finished workers
// were, which could only look for a rendezvous that is over.
func (p *planner) deleteLatecomers() {
	for w := range p.workers() {
		if !w.ended() && !p.recordedMember(w) {
			p.delete(w)
		}
	}
}

func (p *planner) completionGrace() time.Duration {
	return time.Duration(ptr.Deref(p.spec.RunPolicy.CompletionGraceSeconds, v1alpha1.DefaultCompletionGraceSeconds)) * time.Second
}

// failedWorker is the first worker that failed by itself after worker 0 succeeded. Failures that were already recorded as
// losses happened before.
func (p *planner) failedWorker() *Worker {
	for w := range p.workers() {
		if w.failed() && w.Index < p.maximum && !p.recordedLost(w) {
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
	p.st.Elasticity, p.st.Members = nil, nil
	p.set(condition, metav1.ConditionTrue, reason, message)
}

// describe says why a pod failed, in a few words.
func describe(w *Worker) string {
	switch {
	case w.Reason == "" && w.Message == "":
		return "no reason given"
	case w.Message == "":
		return w.Reason
	case w.Reason == "":
		return clip(w.Message, 200)
	}
	return w.Reason + ": " + clip(w.Message, 200)
}

package training

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// stopped is true from when the job was told to stop until its next attempt.
func stopped(st *v1alpha1.ElasticTrainingJobStatus) bool {
	return meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionSuspended)
}

// mustStop tells whether the job must not run.
func (p *planner) mustStop() bool { return p.spec.RunPolicy.Suspend || p.st.Preemption != nil }

// heedPreemption records for whom the job must stop. From then on it does, even if the reason goes away while it saves itself.
func (p *planner) heedPreemption() {
	if v := p.o.Verdict.Preempt; v != nil && p.st.Preemption == nil && !p.spec.RunPolicy.Suspend {
		p.st.Preemption = &v1alpha1.PreemptionStatus{By: v.By.String(), Since: p.time(), Tier: v.Tier}
	}
}

// whyStopped says for whom or what the job stops, in the words of its reasons.
func (p *planner) whyStopped() (stopped, stopping, why string) {
	switch by := p.st.Preemption; {
	case p.spec.RunPolicy.Suspend:
		return v1alpha1.ReasonSuspended, v1alpha1.ReasonSuspending, "because runPolicy.suspend is true"
	case by != nil:
		return v1alpha1.ReasonPreempted, v1alpha1.ReasonPreempting, fmt.Sprintf("for %s of tier %s", by.By, by.Tier)
	}
	return v1alpha1.ReasonSuspended, v1alpha1.ReasonSuspending, "before its next attempt"
}

// stop records that the job is stopped, and deletes nothing yet: what is recorded is not taken for losses later.
func (p *planner) stop() {
	if by := p.st.Preemption; by != nil && by.LostSince == nil {
		by.LostSince = p.lostSince()
	}
	if p.st.Attempt != nil {
		p.closeAttempt()
	}
	p.st.Elasticity = nil
	p.set(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspending, "")
}

// stayStopped removes everything that holds or asks for room, and starts the next attempt once the job may run again and
// the last pod is gone. The groups go too, because one that Volcano admitted keeps its minResources in the books of its queue.
func (p *planner) stayStopped() {
	for i := range p.o.Workers {
		p.delete(&p.o.Workers[i])
	}
	p.deleteGroups()
	p.noteStoppedInVain()
	if p.o.Verdict.Resume {
		p.st.Preemption = nil
	}
	if p.mustStop() || len(p.o.Workers) > 0 || p.o.Core != nil || p.o.Surplus != nil || p.blocked() {
		return
	}
	var next int32 = 1
	if p.st.Attempt != nil {
		next = p.st.Attempt.Number + 1
	}
	p.clear(v1alpha1.ConditionSuspended)
	p.recordAttempt(next)
}

// noteStoppedInVain records once that the gang for which the job stopped was not placed in time.
func (p *planner) noteStoppedInVain() {
	by, vain := p.st.Preemption, p.st.LeftInVain
	if by == nil || !p.inVain(by.By) || vain != nil && !vain.Time.Before(&by.Since) {
		return
	}
	p.st.LeftInVain = &v1alpha1.LeftInVain{For: by.By, Time: p.time(), Workers: p.spec.MinReplicas, Whole: true}
}

// sayStopped speaks of a job that is stopped or on its way to it.
func (p *planner) sayStopped() {
	p.st.Phase, p.st.Place = v1alpha1.PhaseSuspended, 0
	reason, leavingReason, why := p.whyStopped()
	message := "The job is stopped, " + why + ", and holds nothing. Set it to false to start the next attempt."
	if by := p.st.Preemption; by != nil && !p.spec.RunPolicy.Suspend {
		message = fmt.Sprintf("The job was stopped at %s %s, and holds nothing. It goes on by itself when its core fits and no such "+
			"gang waits.", by.Since.UTC().Format("2006-01-02 15:04:05 MST"), why)
	}
	leaving := len(p.o.Workers) > 0 || p.o.Core != nil || p.o.Surplus != nil
	p.clear(v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling, v1alpha1.ConditionRangePending)
	switch {
	case leaving:
		reason, message = leavingReason, fmt.Sprintf("The job stops %s; pods still to leave: %d.", why, len(p.o.Workers))
		if stuck := p.stuckPod(); stuck != nil {
			message += " " + p.sayUnreachable(stuck)
		}
		p.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, message)
	case !p.mustStop():
		if p.obstacle != nil {
			p.sayObstacle(*p.obstacle)
			return
		}
	}
	p.set(v1alpha1.ConditionSuspended, metav1.ConditionTrue, reason, message)
	p.set(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	p.set(v1alpha1.ConditionScheduled, metav1.ConditionFalse, reason, message)
	p.set(v1alpha1.ConditionFullSize, metav1.ConditionFalse, reason, message)
	p.say(reason, message)
}

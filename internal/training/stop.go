package training

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// heedPreemption records for whom the job must stop. From then on it does, even if the reason goes away while it saves itself.
func (p *planner) heedPreemption() {
	if v := p.Verdict.Preempt; v != nil && p.Status.Preemption == nil && !p.Spec.RunPolicy.Suspend {
		p.Status.Preemption = &v1alpha1.PreemptionStatus{By: v.By.String(), Since: p.Time(), Tier: v.Tier}
	}
}

// stopBeforeBeginning stops a job that has no attempt yet.
func (p *planner) stopBeforeBeginning() (stops bool) {
	if !p.MustStop() {
		return false
	}
	p.stop()
	return true
}

// stopIfTold stops a job that must not run, once worker 0 has saved a checkpoint or its grace has passed.
func (p *planner) stopIfTold() (stops bool) {
	if !p.MustStop() {
		return false
	}
	if ready := p.ensureCheckpoint(forStop); !ready {
		return false
	}
	p.stop()
	return true
}

// stop records that the job is stopped, and deletes nothing yet: what is recorded is not taken for losses later.
func (p *planner) stop() {
	if by := p.Status.Preemption; by != nil && by.LostSince == nil {
		by.LostSince = p.LostSince()
	}
	if p.Status.Attempt != nil {
		p.closeAttempt()
	}
	p.Status.Elasticity = nil
	p.Conditions().Set(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspending, "")
}

// stayStopped removes everything that holds or asks for room, and starts the next attempt once the job may run again and
// the last pod is gone. The groups go too, because one that Volcano admitted keeps its minResources in the books of its queue.
func (p *planner) stayStopped() {
	for i := range p.Workers {
		p.delete(&p.Workers[i])
	}
	p.deleteGroups()
	p.noteStoppedInVain()
	if p.Verdict.Resume {
		p.Status.Preemption = nil
	}
	if p.MustStop() || len(p.Workers) > 0 || p.Core != nil || p.Surplus != nil {
		return
	}
	if hindered := p.findObstacle(); hindered {
		return
	}
	var next int32 = 1
	if p.Status.Attempt != nil {
		next = p.Status.Attempt.Number + 1
	}
	p.Conditions().Remove(v1alpha1.ConditionSuspended)
	p.recordAttempt(next)
}

// noteStoppedInVain records once that the gang for which the job stopped was not placed in time.
func (p *planner) noteStoppedInVain() {
	by, vain := p.Status.Preemption, p.Status.LeftInVain
	if by == nil || !p.InVain(by.By) || vain != nil && !vain.Time.Before(&by.Since) {
		return
	}
	p.Status.LeftInVain = &v1alpha1.LeftInVain{For: by.By, Time: p.Time(), Workers: p.Spec.MinReplicas, Whole: true}
}

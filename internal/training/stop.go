package training

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// heedPreemption records for which gang the job must stop. If that were kept in memory only, a restart of the operator could
// decide otherwise halfway through, and a second job would stop for the same gang.
func (p *planner) heedPreemption() {
	if v := p.Verdict.Preempt; v != nil && p.Status.Preemption == nil && !p.Spec.Suspend {
		p.Status.Preemption = &v1beta1.PreemptionStatus{By: v1beta1.RefTo(v.By), Since: p.StatusTime(), Tier: v.Tier}
	}
}

// stopBeforeBeginning stops a job that has no attempt yet.
func (p *planner) stopBeforeBeginning() (stops bool) {
	if !p.MustStop() {
		return false
	}
	p.recordStop()
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
	p.recordStop()
	return true
}

// recordStop marks the job as stopped and deletes nothing yet. Once that is written the job has no members, so the deletions that
// follow are not counted as losses.
func (p *planner) recordStop() {
	if by := p.Status.Preemption; by != nil && by.LostSince == nil {
		by.LostSince = p.LostSince()
	}
	if p.Status.Attempt != nil {
		p.closeAttempt()
	}
	p.forgetSurplus()
	p.ConditionWriter().Set(v1beta1.ConditionSuspended, metav1.ConditionTrue, v1beta1.ReasonSuspending, "")
}

// stayStopped deletes everything of a stopped job that holds or asks for room, and starts the next attempt once the job may run
// and its last pod is gone.
func (p *planner) stayStopped() {
	for i := range p.Workers {
		p.deleteWorker(&p.Workers[i])
	}
	// Volcano counts the minResources of an admitted PodGroup against its queue even without pods, so the very gang that the job
	// stopped for could not use the room.
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
	// A new attempt, not the old one: a container that still runs on a lost node must not join the new rendezvous.
	p.ConditionWriter().Remove(v1beta1.ConditionSuspended)
	p.recordAttempt(next)
}

// noteStoppedInVain records once that the gang for which the job stopped was not placed in time. What was recorded of another
// gang by a clock that was set back since does not keep it from that.
func (p *planner) noteStoppedInVain() {
	by, vain := p.Status.Preemption, p.Status.LeftInVain
	if by == nil || !p.InVain(by.By) {
		return
	}
	now := p.StatusTime()
	if vain != nil && !vain.Time.Before(&by.Since) && (vain.For == by.By || !now.Before(&vain.Time)) {
		return
	}
	p.Status.LeftInVain = &v1beta1.LeftInVain{For: by.By, Time: p.StatusTime(), Workers: p.Spec.MinReplicas, Whole: true}
}

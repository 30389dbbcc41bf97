package training

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// cleanUp deletes the pods that cleanup.podPolicy names, and then the PodGroups and the Service of an ended job. A job that
// failed because its time was over keeps no running pod: they would train on beyond any limit.
func (p *planner) cleanUp() {
	active := false // With policy None running pods stay, and so does what they need: their group and their Service.
	policy := p.Spec.Cleanup.PodPolicy
	if policy == v1beta1.CleanPodPolicyNone && p.ranOutOfTime() {
		policy = v1beta1.CleanPodPolicyRunning
	}
	for i := range p.Workers {
		w := &p.Workers[i]
		switch policy {
		case v1beta1.CleanPodPolicyAll:
			p.deleteWorker(w)
		case v1beta1.CleanPodPolicyNone:
			active = active || !w.HasEnded()
		default:
			if !w.HasEnded() {
				p.deleteWorker(w)
			}
		}
	}
	if active {
		return
	}
	p.deleteGroups()
	p.d.DeleteService = p.Service
}

// ranOutOfTime is true for a job that one of its deadlines, or that of its tier, has ended.
func (p *planner) ranOutOfTime() bool {
	failed := meta.FindStatusCondition(p.Status.Conditions, v1beta1.ConditionFailed)
	if failed == nil || failed.Status != metav1.ConditionTrue {
		return false
	}
	switch failed.Reason {
	case v1beta1.ReasonDeadlineExceeded, v1beta1.ReasonSchedulingTimeout, v1beta1.ReasonBelowMinTimeout:
		return true
	}
	return false
}

// leaveNothing deletes the pods and PodGroups of a job that is being deleted and not gone yet, because somebody else's finalizer
// holds it. Garbage collection would begin only once the job is gone, and nothing looks after its pods meanwhile. With
// propagation Orphan they stay; an object without finalizers has so many that the cache dropped them.
func (p *planner) leaveNothing() {
	finalizers := p.Job.Finalizers
	if len(finalizers) == 0 || slices.Contains(finalizers, metav1.FinalizerOrphanDependents) {
		return
	}
	for i := range p.Workers {
		p.deleteWorker(&p.Workers[i])
	}
	p.deleteGroups()
}

// deleteGroups deletes both PodGroups, as far as they exist.
func (p *planner) deleteGroups() {
	for _, g := range []struct {
		name  string
		state *gang.State
	}{{gang.CoreName(p.Job.Name), p.Core}, {gang.SurplusName(p.Job.Name), p.Surplus}} {
		if g.state != nil {
			p.d.DeleteGroups = append(p.d.DeleteGroups, gang.Ref{Name: g.name, UID: g.state.UID})
		}
	}
}

// deleteIfExpired deletes an ended job once cleanup.ttlSecondsAfterFinished has passed.
func (p *planner) deleteIfExpired() {
	ttl := p.Spec.Cleanup.TTLSecondsAfterFinished
	if ttl == nil || p.Status.CompletionTime == nil {
		return
	}
	left := p.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(p.Now)
	if p.d.DeleteJob = left <= 0; !p.d.DeleteJob {
		p.requeueAfter(left)
	}
}

package training

import (
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// cleanUp deletes the pods that cleanup.podPolicy names, and then the PodGroups and the Service of an ended job.
func (p *planner) cleanUp() {
	active := false // With policy None running pods stay, and so does what they need: their group and their Service.
	for i := range p.Workers {
		w := &p.Workers[i]
		switch p.Spec.Cleanup.PodPolicy {
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

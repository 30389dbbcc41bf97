package training

import (
	"time"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// cleanUp removes what an ended job does not need. Its conditions are in status already.
func (p *planner) cleanUp() {
	active := false
	for i := range p.Workers {
		w := &p.Workers[i]
		switch p.Spec.RunPolicy.CleanPodPolicy {
		case v1alpha1.CleanPodPolicyAll:
			p.delete(w)
		case v1alpha1.CleanPodPolicyNone:
			active = active || !w.Ended()
		default:
			if !w.Ended() {
				p.delete(w)
			}
		}
	}
	if active {
		return
	}
	p.deleteGroups()
	p.d.DeleteService = p.Service
}

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

// expire deletes an ended job that has outlived its time.
func (p *planner) expire() {
	ttl := p.Spec.RunPolicy.TTLSecondsAfterFinished
	if ttl == nil || p.Status.CompletionTime == nil {
		return
	}
	left := p.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(p.Now)
	if p.d.DeleteJob = left <= 0; !p.d.DeleteJob {
		p.wake(left)
	}
}

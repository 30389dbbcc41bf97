package training

import (
	"slices"
	"time"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// forceDelete deletes pods by force that have to leave a node that does not answer, if the user wants that, once their loss is in
// status.
func (p *planner) forceDelete() {
	after := p.Spec.RunPolicy.ForceDeleteAfterSeconds
	if after == nil {
		return
	}
	for i := range p.Workers {
		w := &p.Workers[i]
		since, silent := p.OnSilentNode(w)
		if !silent || p.RecordedMember(w) {
			continue
		}
		if left := since.Add(time.Duration(*after) * time.Second).Sub(p.Now); left > 0 {
			p.wake(left)
		} else {
			p.d.ForceDeletePods = append(p.d.ForceDeletePods, *w)
		}
	}
}

// reviewAvoidedNodes lets nodes be used again whose time has passed, and forgets those that have long been.
func (p *planner) reviewAvoidedNodes() {
	p.Status.AvoidedNodes = slices.DeleteFunc(p.Status.AvoidedNodes, func(n v1alpha1.AvoidedNode) bool {
		return p.await(n.Time.Add(losses.Avoidance(n.Rejections) + losses.LongestAvoidance))
	})
	for i := range p.Status.AvoidedNodes {
		n := &p.Status.AvoidedNodes[i]
		if n.Until == nil {
			continue
		}
		if come := p.await(n.Until.Time); come {
			n.Until = nil
		}
	}
}

// await asks to be called when a time comes, and reports whether it has.
func (p *planner) await(t time.Time) (come bool) {
	left := t.Sub(p.Now)
	if left > 0 {
		p.wake(left)
	}
	return left <= 0
}

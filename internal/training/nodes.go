package training

import (
	"slices"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// forceDelete deletes pods by force that terminate on a node that does not answer, after deadlines.forceDeleteSeconds.
func (p *planner) forceDelete() {
	after := p.Spec.Deadlines.ForceDeleteSeconds
	if after == nil {
		return // The machine may still run, and then two workers of one name write to one checkpoint: the user decides.
	}
	for i := range p.Workers {
		w := &p.Workers[i]
		since, silent := p.OnSilentNode(w)
		if !silent || p.RecordedMember(w) {
			continue // A member's loss must be in status before its pod disappears.
		}
		if left := since.Add(time.Duration(*after) * time.Second).Sub(p.Now); left > 0 {
			p.requeueAfter(left)
		} else {
			p.d.ForceDeletePods = append(p.d.ForceDeletePods, *w)
		}
	}
}

// reviewAvoidedNodes allows nodes again whose time has passed.
func (p *planner) reviewAvoidedNodes() {
	// An entry outlives its time by the longest avoidance, so that a node that rejects again soon is avoided for longer.
	p.Status.AvoidedNodes = slices.DeleteFunc(p.Status.AvoidedNodes, func(n v1beta1.AvoidedNode) bool {
		return p.wakeAt(n.Time.Add(losses.AvoidanceAfter(n.Rejections) + losses.LongestAvoidance))
	})
	for i := range p.Status.AvoidedNodes {
		n := &p.Status.AvoidedNodes[i]
		if n.Until == nil {
			continue
		}
		if come := p.wakeAt(n.Until.Time); come {
			n.Until = nil
		}
	}
}

// wakeAt asks to be called when a time comes, and reports whether it has come.
func (p *planner) wakeAt(t time.Time) (come bool) {
	left := t.Sub(p.Now)
	if left > 0 {
		p.requeueAfter(left)
	}
	return left <= 0
}

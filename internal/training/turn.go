package training

import (
	"math"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// gated tells whether the profile limits what jobs hold, so that the job waits for its turn and grows within it.
func (p *planner) gated() bool { return admission.Of(p.o.Profile).Gate() }

// allowance is how many surplus workers the limits of the profile leave to the job.
func (p *planner) allowance() int32 {
	switch {
	case !p.gated():
		return math.MaxInt32
	case !p.admitted():
		return 0
	}
	return p.o.Turn.Surplus
}

// awaitsTurn tells whether the job waits for its turn to have a gang. A gang that is there stays, unless the attempt is larger.
func (p *planner) awaitsTurn() bool {
	grown := p.o.Core != nil && p.o.Core.MinMember() < p.minimum
	switch {
	case !p.gated() || p.admitted() || p.o.Core != nil && !grown:
		return false
	case p.refused() != nil:
		return false // It asks with one worker, and has no gang.
	case grown:
		p.deleteGroups() // The attempt is larger than the one that had its turn.
	}
	if b := p.o.Turn.Blocked; b != nil {
		p.obstacle = &Obstacle{Reason: v1alpha1.ReasonQuotaExceeded, Message: b.Say(p.o.Profile.Name), Stalled: b.Never}
	}
	return true
}

// admitted tells whether the turn of this attempt has come.
func (p *planner) admitted() bool {
	return p.o.Turn.Admitted && p.o.Turn.Ask == admission.AskOf(p.o.Job)
}

package training

import (
	"slices"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// createCore creates the gang: its PodGroup, and the core workers that are missing.
func (p *planner) createCore() {
	p.ensureGroup(p.Core, coreGroup(p.State, p.d.Blueprint))
	p.createMissing(0, p.Minimum)
	p.prepareWorkers()
}

// ensureGroup creates a PodGroup that is missing, and restores one that somebody changed.
func (p *planner) ensureGroup(state *gang.State, g gang.Group) {
	switch {
	case state == nil:
		p.d.CreateGroups = append(p.d.CreateGroups, g)
	case g.Drifted(*state):
		p.d.RestoreGroups = append(p.d.RestoreGroups, gang.Restore{Group: g, UID: state.UID})
	}
}

// coreGroup is the PodGroup of the core. While a reservation hands its room over it comes before everybody else's, so that it is
// first in the very cycle of Volcano's that frees the room; once it is placed it stands where its tier stands.
func coreGroup(s *jobstate.State, b trainingpod.Blueprint) gang.Group {
	g := b.CoreGroup()
	if inherits(s) && !s.CorePlaced() {
		g.PriorityClass = config.HandoverClass
	}
	return g
}

// inherits tells whether a reservation hands its room over to the job, which has not begun.
func inherits(s *jobstate.State) bool {
	if s.Profile == nil || s.Status.StartTime != nil {
		return false
	}
	job := s.Job.Namespace + "/" + s.Job.Name
	return slices.ContainsFunc(s.Profile.Status.Reservations, func(r v1alpha1.ReservationStatus) bool {
		return r.Phase == v1alpha1.ReservationHandingOver && r.Job == job
	})
}

// holdForAdmission has the job wait for its turn to have a gang. A gang that is there stays, unless the attempt is larger.
func (p *planner) holdForAdmission() (holds bool) {
	grown := p.Core != nil && p.Core.MinMember() < p.Minimum
	switch {
	case !p.Gated() || p.Admitted() || p.Core != nil && !grown:
		return false
	case p.Refused() != nil:
		return false // It asks with one worker, and has no gang.
	case grown:
		p.deleteGroups() // The attempt is larger than the one that had its turn.
	}
	if b := p.Turn.Blocked; b != nil {
		p.obstacle = &jobstate.Obstacle{Reason: v1alpha1.ReasonQuotaExceeded, Message: b.Say(p.Profile.Name), Stalled: b.Never}
	}
	return true
}

// askAgain asks the API server for worker 0 alone, while the job has no gang: one that can have no workers would keep its
// minResources in the books of its queue, and others would leave to make room for it. What status says stands until the
// worker is there.
func (p *planner) askAgain() (refused bool) {
	if p.obstacle = p.Refused(); p.obstacle == nil {
		return false
	}
	if p.Core != nil || p.Surplus != nil {
		p.deleteGroups()
		return true
	}
	p.createMissing(0, 1)
	p.prepareWorkers()
	return true
}

// createMissing creates the workers of [from, to) that have no pod, lowest index first. A pod that is still leaving holds its
// name, and is waited for. A lost one is replaced once its loss is in status, which cannot be written of a job that was
// deleted: the workers of such a job may be seen to go long before the job is.
func (p *planner) createMissing(from, to int32) {
	for i := from; i < to; i++ {
		if p.At[i] == nil && !p.HasLeft(i) && !strayAt(p.State, i) && !p.LivesOnRecord(i) {
			p.d.CreateWorkers = append(p.d.CreateWorkers, i)
		}
	}
}

func strayAt(s *jobstate.State, i int32) bool {
	return slices.ContainsFunc(s.Strays, func(w *podstate.Worker) bool { return w.Index == i })
}

// grow creates the surplus. Indices that gave way wait for the cooldown; those that the job never had do not.
func (p *planner) grow() {
	if p.Maximum <= p.Minimum || !p.CoreRuns() || p.MustStop() {
		return
	}
	if p.Surplus == nil {
		if p.obstacle = p.QueueShut(); p.obstacle != nil {
			return // Volcano's webhook would refuse the group.
		}
	}
	p.ensureGroup(p.Surplus, p.d.Blueprint.SurplusGroup())
	if wait := p.Cooldown(); wait > 0 {
		p.wake(wait)
	} else {
		p.forget(func(i int32) bool { return p.Evicted(i) && p.At[i] == nil && !p.HasLeft(i) })
	}
	for i := p.Minimum; i < p.Maximum && !p.full(); i++ {
		if !p.Evicted(i) {
			p.createMissing(i, i+1)
		}
	}
}

// full tells whether a job that creates only what fits, or what the limits of its profile allow, has created that.
func (p *planner) full() bool {
	limit := p.Allowance()
	if p.Spec.Elasticity.Surplus == v1alpha1.SurplusFitting {
		limit = min(limit, p.Verdict.SurplusLimit)
	}
	var surplus int32
	for w := range p.AttemptWorkers() {
		if p.IsSurplus(w.Index) && !w.Terminating && !w.Ended() {
			surplus++
		}
	}
	for _, i := range p.d.CreateWorkers {
		if p.IsSurplus(i) {
			surplus++
		}
	}
	return surplus >= limit
}

package training

import (
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// createCore creates the core's PodGroup and the core workers that are missing.
func (p *planner) createCore() {
	p.ensureGroup(p.Core, coreGroup(p.State, p.d.Blueprint))
	p.createMissing(0, p.Minimum)
	p.prepareWorkers()
}

// ensureGroup creates a PodGroup that is missing, and restores one that somebody changed or that does not tell of the last
// checkpoint.
func (p *planner) ensureGroup(state *gang.State, g gang.Group) {
	g = p.tellOfCheckpoint(state, g)
	switch {
	case state == nil:
		p.d.CreateGroups = append(p.d.CreateGroups, g)
	case g.HasDrifted(*state):
		p.d.RestoreGroups = append(p.d.RestoreGroups, gang.Restore{Group: g, UID: state.UID})
	}
}

// coreGroup is the PodGroup of the core. While a reservation hands its room to the job, the group has a priority above all
// others, so that Volcano places it in the same cycle that frees the room. Once placed it gets the priority of its tier.
func coreGroup(s *jobstate.State, b trainingpod.Blueprint) gang.Group {
	g := b.CoreGroup()
	if inheritsReservation(s) && !s.CorePlaced() {
		g.PriorityClass = config.HandoverClass
	}
	return g
}

// inheritsReservation is true for a job that has not begun and to which a reservation is handing its room over.
func inheritsReservation(s *jobstate.State) bool {
	if s.Profile == nil || s.Status.StartTime != nil {
		return false
	}
	job := v1beta1.GangRef{Namespace: s.Job.Namespace, Name: s.Job.Name}
	return slices.ContainsFunc(s.Profile.Status.Reservations, func(r v1beta1.ReservationStatus) bool {
		return r.Phase == v1beta1.ReservationHandingOver && r.Job != nil && *r.Job == job
	})
}

// holdForAdmission keeps a job without a gang while the limits of its profile do not admit it: a gang in Volcano's queue makes
// others give way, which would be in vain for one that may not run. A gang that exists stays, unless the attempt has grown.
func (p *planner) holdForAdmission() (holds bool) {
	grown := p.Core != nil && p.Core.MinMember() < p.Minimum
	switch {
	case !p.IsGated() || p.IsAdmitted() || p.Core != nil && !grown:
		return false
	case p.RefusalObstacle() != nil:
		return false // askAgain tries one worker without a gang; that needs no admission.
	case grown:
		p.deleteGroups() // The job was admitted with a smaller minReplicas, so it must be admitted again.
	}
	if b := p.Turn.Blocked; b != nil {
		p.obstacle = &jobstate.Obstacle{Reason: v1beta1.ReasonQuotaExceeded, Message: b.DescribeBlock(p.Profile.Name),
			Stalled: b.Never}
	}
	return true
}

// askAgain creates worker 0 alone when the API server refused the job's pods, to see whether it still does. The job has no gang
// meanwhile: Volcano would count the minResources of an admitted group against its queue, and others would make room for pods
// that cannot exist. The status keeps the refusal until the worker exists.
func (p *planner) askAgain() (refused bool) {
	if p.obstacle = p.RefusalObstacle(); p.obstacle == nil {
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

// createMissing creates the workers of [from, to) that have no pod, lowest index first.
func (p *planner) createMissing(from, to int32) {
	for i := from; i < to; i++ {
		if p.mayCreate(i) {
			p.d.CreateWorkers = append(p.d.CreateWorkers, i)
		}
	}
}

// mayCreate is true for a worker that has no pod and may have one. A pod that is still terminating holds its name, so the worker
// waits for it. A lost worker is replaced once its loss is in status: that write fails for a deleted job, whose pods the garbage
// collector may remove long before we see the job go.
func (p *planner) mayCreate(i int32) bool {
	return p.At[i] == nil && !p.HasLeft(i) && !p.HasStrayAt(i) && !p.LivesOnRecord(i)
}

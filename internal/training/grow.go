package training

import (
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// growSurplus has the job grow to what it may have now.
func (p *planner) growSurplus() {
	// Before the core runs, surplus would compete for room without training anything.
	if p.Maximum <= p.Minimum || !p.CoreRuns() || p.MustStop() {
		return
	}
	if p.Surplus == nil {
		if p.obstacle = p.QueueShut(); p.obstacle != nil {
			return // Volcano's webhook refuses a PodGroup in a closed queue.
		}
	}
	p.ensureGroup(p.Surplus, p.d.Blueprint.SurplusGroup())
	if p.Growth().IsInSteps() {
		p.growInStep()
	} else {
		p.growAtOnce()
	}
}

// growAtOnce creates the surplus that is missing. Workers that gave way wait for their cooldown.
func (p *planner) growAtOnce() {
	if pause := p.Growth().EvictionPause(); pause > 0 {
		p.requeueAfter(pause)
	} else {
		p.returnEvicted()
	}
	p.createSurplus(p.Growth().SurplusTarget())
}

// returnEvicted has workers that gave way created again like new ones: without their entries their indices are free.
func (p *planner) returnEvicted() {
	p.dropMembers(func(i int32) bool { return p.IsEvicted(i) && p.At[i] == nil && !p.HasLeft(i) })
}

// createSurplus creates missing surplus, lowest index first, until the job has this many.
func (p *planner) createSurplus(target int32) {
	have := p.surplus()
	for i, missing := p.Minimum, target-have.placed-have.waiting; i < p.Maximum && missing > 0; i++ {
		if before := len(p.d.CreateWorkers); !p.IsEvicted(i) {
			p.createMissing(i, i+1)
			missing -= int32(len(p.d.CreateWorkers) - before)
		}
	}
}

// growInStep has all surplus that fits join in one step. Between two steps no surplus may join, so surplus that still waits for
// room then is deleted: Volcano would bind it whenever a place is free, and each worker that joins restarts all.
func (p *planner) growInStep() {
	if left := p.Growth().StepLeft(); left > 0 {
		p.requeueAfter(left)
	}
	if pause := p.Growth().PauseLeft(); pause > 0 {
		p.requeueAfter(pause)
		if p.Growth().StepLeft() <= 0 {
			p.withdrawWaiting()
		}
		return
	}
	if left := p.Growth().RestartLeft(); left > 0 {
		p.requeueAfter(left) // What may join freely now may not afterwards.
	}
	target, have := p.Growth().SurplusTarget(), p.surplus()
	if p.Growth().FollowsRoom() && have.waiting > 0 && have.placed+have.waiting > target {
		p.withdrawWaiting() // Others have taken the room that was there for these.
		return
	}
	if have.placed+have.waiting >= target {
		return
	}
	if p.Growth().MustPay() && have.waiting == 0 {
		p.step = p.stepOf(target - have.placed)
		if !p.step.Pays() {
			return
		}
		if left := p.step.TimeLeft(); left > 0 {
			if p.requeueAfter(left); p.Verdict.RoomSince.IsZero() {
				p.step = nil // The arbiter has yet to see the room that the job counts on, and wakes it then.
			}
			return
		}
	}
	p.returnEvicted()
	p.createSurplus(target)
}

// noteStep records that a step began with the worker that got its node last, if it is of no earlier step.
func (p *planner) noteStep() {
	if !p.Growth().IsInSteps() {
		return
	}
	last := p.Growth().LastStep()
	for w := range p.AttemptWorkers() {
		if !p.IsSurplus(w.Index) || !w.Scheduled || w.Terminating || w.HasEnded() || p.RecordedLost(w) {
			continue
		}
		bound := w.BoundTime.Time
		if last.IsZero() || bound.Sub(last) > p.Growth().StepTime() {
			p.Growth().NoteStep(bound)
			last = bound
		}
	}
}

// stepOf is the step by which so many workers join.
func (p *planner) stepOf(joining int32) *growth.Step {
	return &growth.Step{
		Training: p.Minimum + p.surplus().placed, Joining: joining, Outage: p.Growth().OutageTime(), Stay: p.Stay,
		Idle: p.Growth().RoomIdle(), First: p.Growth().LastStep().IsZero(),
		Devices: trainingpod.GPUs(p.Job, 1) + p.Claims.Count().Devices,
	}
}

// withdrawWaiting deletes the surplus that waits for room.
func (p *planner) withdrawWaiting() {
	for w := range p.AttemptWorkers() {
		if p.IsSurplus(w.Index) && !w.Scheduled && !w.HasEnded() {
			p.deleteWorker(w)
		}
	}
}

// surplusCount counts surplus by whether it has a node.
type surplusCount struct{ placed, waiting int32 }

// surplus counts the surplus workers with a node, and those that wait for one or are created by this decision. One that this
// decision deletes, to be created again, keeps its place.
func (p *planner) surplus() surplusCount {
	var n surplusCount
	for w := range p.AttemptWorkers() {
		switch {
		case !p.IsSurplus(w.Index) || w.Terminating || w.HasEnded():
		case w.Scheduled:
			n.placed++
		default:
			n.waiting++
		}
	}
	for _, i := range p.d.CreateWorkers {
		if p.IsSurplus(i) {
			n.waiting++
		}
	}
	return n
}

// hasFullSurplus is true when the job has all the surplus that its profile's limits and the free room allow now.
func (p *planner) hasFullSurplus() bool {
	have := p.surplus()
	return have.placed+have.waiting >= p.Growth().SurplusTarget()
}

// leaveRemainder has surplus leave that is no whole step, because others of the step were lost: it cannot train. It goes along
// with the restart that their loss causes.
func (p *planner) leaveRemainder() {
	step := p.Spec.Elasticity.Step
	if step <= 1 || p.Growth().StepLeft() > 0 {
		return // More of the present step may still come.
	}
	stay := p.placedSurplus()
	for excess := (int32(len(stay)) + p.countReturning()) % step; excess > 0 && len(stay) > 0; excess-- {
		w := stay[len(stay)-1] // The highest index.
		if w.IsRunning() {
			if ready := p.ensureCheckpoint(forShrink); !ready {
				return
			}
		}
		p.books.ReleaseRemainder(w)
		stay = stay[:len(stay)-1]
	}
}

// placedSurplus lists the surplus workers that have a node and stay, by rising index.
func (p *planner) placedSurplus() []*podstate.Worker {
	var stay []*podstate.Worker
	for w := range p.AttemptWorkers() {
		if p.IsSurplus(w.Index) && w.Index < p.Maximum && w.Scheduled && !w.Terminating && !w.HasEnded() && !p.IsEvicted(w.Index) {
			stay = append(stay, w)
		}
	}
	return stay
}

// countReturning counts the surplus workers that make their step whole again: those that wait for a node, and those that were
// lost and are created again.
func (p *planner) countReturning() int32 {
	n := p.surplus().waiting
	if p.Growth().RestartLeft() <= 0 && p.Growth().PauseLeft() > 0 {
		return n // What is lost now is not created before the pause is over.
	}
	for _, m := range p.Status.Members {
		w := p.At[m.Index]
		if p.IsSurplus(m.Index) && m.Index < p.Maximum && m.IsLost() && !m.HasLeft() && !p.IsEvicted(m.Index) &&
			(w == nil || w.UID == m.UID) {
			n++
		}
	}
	return n
}

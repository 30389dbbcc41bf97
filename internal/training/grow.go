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
	if p.GrowsInSteps() {
		p.growInStep()
	} else {
		p.growAtOnce()
	}
}

// growAtOnce creates the surplus that is missing. Workers that gave way wait for their cooldown.
func (p *planner) growAtOnce() {
	if pause := p.EvictionPause(); pause > 0 {
		p.requeueAfter(pause)
	} else {
		p.returnEvicted()
	}
	p.createSurplus(p.SurplusTarget())
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
	p.noteGrowth()
	if left := p.StepLeft(); left > 0 {
		p.requeueAfter(left)
	}
	if pause := p.GrowthPause(); pause > 0 {
		p.requeueAfter(pause)
		if p.StepLeft() <= 0 {
			p.withdrawWaiting()
		}
		return
	}
	if left := p.RestartLeft(); left > 0 {
		p.requeueAfter(left) // What may join freely now may not afterwards.
	}
	target, have := p.SurplusTarget(), p.surplus()
	if p.FollowsRoom() && have.waiting > 0 && have.placed+have.waiting > target {
		p.withdrawWaiting() // Others have taken the room that was there for these.
		return
	}
	if have.placed+have.waiting >= target {
		return
	}
	if p.MustPay() && have.waiting == 0 {
		if p.step = p.stepOf(target - have.placed); !p.step.Weigh().Pays() {
			return
		}
	}
	p.returnEvicted()
	p.createSurplus(target)
}

// noteGrowth records that a step began with the worker that got its node last, if it is of no earlier step.
func (p *planner) noteGrowth() {
	last := p.LastGrowth()
	for w := range p.AttemptWorkers() {
		if !p.IsSurplus(w.Index) || !w.Scheduled || w.Terminating || w.HasEnded() || p.RecordedLost(w) {
			continue
		}
		bound := w.BoundTime.Time
		if bound.After(p.Now) {
			bound = p.Now // Of a clock that is ahead.
		}
		if last.IsZero() || bound.Sub(last) > p.StepTime() {
			p.NoteGrowth(bound)
			last = bound
		}
	}
}

// stepOf is the step by which so many workers join.
func (p *planner) stepOf(joining int32) *growth.Step {
	return &growth.Step{
		Training: p.Minimum + p.surplus().placed, Joining: joining, Outage: p.OutageTime(), Stay: p.Stay,
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

// surplusCount counts surplus that stays.
type surplusCount struct{ placed, waiting int32 }

// surplus counts the surplus workers that stay: those with a node, and those that wait for one or are created by this decision.
func (p *planner) surplus() surplusCount {
	var n surplusCount
	for w := range p.AttemptWorkers() {
		switch {
		case !p.IsSurplus(w.Index) || w.Terminating || w.HasEnded() || p.deleting[w.UID]:
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
	return have.placed+have.waiting >= p.SurplusTarget()
}

// leaveRemainder has surplus leave that is no whole step, because others of the step were lost: it cannot train. It goes along
// with the restart that their loss causes.
func (p *planner) leaveRemainder() {
	step := p.Spec.Elasticity.Step
	if step <= 1 || p.StepLeft() > 0 {
		return // More of the present step may still come.
	}
	var stay []*podstate.Worker
	returning := int32(0) // Failed workers that are replaced: their step will be whole again.
	for w := range p.AttemptWorkers() {
		switch {
		case !p.IsSurplus(w.Index) || w.Index >= p.Maximum || !w.Scheduled || p.IsEvicted(w.Index) || p.HasTrained(w):
		case w.HasEnded():
			returning++
		case !w.Terminating:
			stay = append(stay, w)
		}
	}
	for excess := (int32(len(stay)) + returning) % step; excess > 0 && len(stay) > 0; excess-- {
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

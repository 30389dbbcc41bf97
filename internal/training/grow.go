package training

import (
	"time"

	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// weighAgain is how often a change of size is weighed again that did not pay.
const weighAgain = 10 * time.Minute

// grower is a planner while it changes how much surplus the job has.
type grower struct{ *planner }

// growSurplus has the job grow to what it may have now.
func (g *grower) growSurplus() {
	// Before the core runs, surplus would compete for room without training anything.
	if g.Maximum <= g.Minimum || !g.CoreRuns() || g.MustStop() {
		return
	}
	if g.Surplus == nil {
		if g.obstacle = g.QueueShut(); g.obstacle != nil {
			return // Volcano's webhook refuses a PodGroup in a closed queue.
		}
	}
	g.ensureGroup(g.Surplus, g.d.Blueprint.SurplusGroup())
	if g.Growth().IsInSteps() {
		g.growInStep()
	} else {
		g.growAtOnce()
	}
}

// growAtOnce creates the surplus that is missing. Workers that gave way wait for their cooldown.
func (g *grower) growAtOnce() {
	if pause := g.Growth().EvictionPause(); pause > 0 {
		g.requeueAfter(pause)
	} else {
		g.returnEvicted()
	}
	g.createSurplus(g.Growth().SurplusTarget())
}

// returnEvicted has workers that gave way created again like new ones: without their entries their indices are free.
func (g *grower) returnEvicted() {
	g.dropMembers(func(i int32) bool { return g.IsEvicted(i) && g.At[i] == nil && !g.HasLeft(i) })
}

// createSurplus creates missing surplus, lowest index first, until the job has this many.
func (g *grower) createSurplus(target int32) {
	if g.Spec.Elasticity.StepWithin != nil {
		g.createWithin(target)
		return
	}
	for i, missing := g.Minimum, g.missingSurplus(target); i < g.Maximum && missing > 0; i++ {
		if before := len(g.d.CreateWorkers); !g.IsEvicted(i) {
			g.createMissing(i, i+1)
			missing -= int32(len(g.d.CreateWorkers) - before)
		}
	}
}

// missingSurplus is how many workers the job lacks of its target; 0 or less for none.
func (g *grower) missingSurplus(target int32) int32 {
	if g.Spec.Elasticity.StepWithin != nil {
		return g.missingWithin(target)
	}
	have := g.surplus()
	return target - have.placed - have.waiting
}

// growInStep has all surplus that fits join in one step. Between two steps no surplus may join, so surplus that still waits for
// room then is deleted: Volcano would bind it whenever a place is free, and each worker that joins restarts all.
func (g *grower) growInStep() {
	if left := g.Growth().StepLeft(); left > 0 {
		g.requeueAfter(left)
	}
	if pause := g.Growth().PauseLeft(); pause > 0 {
		g.requeueAfter(pause)
		if g.Growth().StepLeft() <= 0 {
			g.withdrawWaiting()
		}
		return
	}
	if left := g.Growth().RestartLeft(); left > 0 {
		g.requeueAfter(left) // What may join freely now may not afterwards.
	}
	target, have := g.Growth().SurplusTarget(), g.surplus()
	if g.withdrawBeyond(target, have) {
		return
	}
	missing := g.missingSurplus(target)
	if missing <= 0 {
		return
	}
	if g.Growth().MustPay() && have.waiting == 0 {
		g.step = g.stepOf(missing)
		if !g.step.Pays() {
			g.requeueAfter(weighAgain) // How surplus fares in the queue is learnt anew, and wakes no job.
			return
		}
		if left := g.step.TimeLeft(); left > 0 {
			if g.requeueAfter(left); g.Verdict.RoomSince.IsZero() {
				g.step = nil // The arbiter has yet to see the room that the job counts on, and wakes it then.
			}
			return
		}
	}
	g.returnEvicted()
	g.createSurplus(target)
}

// withdrawBeyond deletes surplus that waits for room which others have taken. It reports whether there is any.
func (g *grower) withdrawBeyond(target int32, have surplusCount) (withdrawn bool) {
	if g.Spec.Elasticity.StepWithin != nil {
		return g.withdrawStranded(target)
	}
	withdrawn = g.Growth().FollowsRoom() && have.waiting > 0 && have.placed+have.waiting > target
	if withdrawn {
		g.withdrawWaiting()
	}
	return withdrawn
}

// noteStep records that a step began with the worker that got its node last, if it is of no earlier step.
func (g *grower) noteStep() {
	if !g.Growth().IsInSteps() {
		return
	}
	last := g.Growth().LastStep()
	for w := range g.AttemptWorkers() {
		if !g.IsSurplus(w.Index) || !w.Scheduled || w.Terminating || w.HasEnded() || g.RecordedLost(w) {
			continue
		}
		bound := w.BoundTime.Time
		if last.IsZero() || bound.Sub(last) > g.Growth().StepTime() {
			g.Growth().NoteStep(bound)
			last = bound
		}
	}
}

// stepOf is the step by which so many workers join.
func (g *grower) stepOf(joining int32) *growth.Step {
	training := g.Minimum + g.surplus().placed
	return &growth.Step{
		Training: training, Joining: joining, Shortfall: 1 - growth.CurveOf(g.Spec, g.Status).ShareOf(training, joining),
		Outage: g.Growth().OutageTime(), Stay: g.Stay,
		Idle: g.Growth().RoomIdle(), First: g.Growth().LastStep().IsZero(),
		Devices: trainingpod.GPUs(g.Job, trainingpod.Ordinary) + g.Claims.Count().Devices,
	}
}

// withdrawWaiting deletes the surplus that waits for room.
func (g *grower) withdrawWaiting() {
	for w := range g.AttemptWorkers() {
		if g.IsSurplus(w.Index) && !w.Scheduled && !w.HasEnded() {
			g.deleteWorker(w)
		}
	}
}

// surplusCount counts surplus by whether it has a node.
type surplusCount struct{ placed, waiting int32 }

// surplus counts the surplus workers with a node, and those that wait for one or are created by this decision. One that this
// decision deletes, to be created again, keeps its place.
func (g *grower) surplus() surplusCount {
	var n surplusCount
	for w := range g.AttemptWorkers() {
		switch {
		case !g.IsSurplus(w.Index) || w.Terminating || w.HasEnded():
		case w.Scheduled:
			n.placed++
		default:
			n.waiting++
		}
	}
	for _, i := range g.d.CreateWorkers {
		if g.IsSurplus(i) {
			n.waiting++
		}
	}
	return n
}

// hasFullSurplus is true when the job has all the surplus that its profile's limits and the free room allow now.
func (g *grower) hasFullSurplus() bool {
	return g.missingSurplus(g.Growth().SurplusTarget()) <= 0
}

// leaveRemainder has surplus leave that is no whole step, because others of the step were lost: it cannot train. It goes along
// with the restart that their loss causes.
func (g *grower) leaveRemainder() {
	step := g.Spec.Elasticity.Step
	if step <= 1 || g.Growth().StepLeft() > 0 {
		return // More of the present step may still come.
	}
	if g.Spec.Elasticity.StepWithin != nil {
		g.leaveRemainders(step)
		return
	}
	stay := g.placedSurplus()
	g.leave(stay, (int32(len(stay))+g.countReturning())%step)
}

// leave has so many of the workers leave, the highest index first. It reports whether all of them do: worker 0 saves a checkpoint
// before.
func (g *grower) leave(stay []*podstate.Worker, excess int32) (done bool) {
	for ; excess > 0 && len(stay) > 0; excess-- {
		w := stay[len(stay)-1]
		if w.IsRunning() {
			if ready := g.ensureCheckpoint(forShrink); !ready {
				return false
			}
		}
		g.books.ReleaseRemainder(w)
		stay = stay[:len(stay)-1]
	}
	return true
}

// placedSurplus lists the surplus workers that have a node and stay, by rising index.
func (g *grower) placedSurplus() []*podstate.Worker {
	var stay []*podstate.Worker
	for w := range g.AttemptWorkers() {
		if g.IsSurplus(w.Index) && w.Index < g.Maximum && w.Scheduled && !w.Terminating && !w.HasEnded() && !g.IsEvicted(w.Index) {
			stay = append(stay, w)
		}
	}
	return stay
}

// countReturning counts the surplus workers that make their step whole again: those that wait for a node, and those that were
// lost and are created again.
func (g *grower) countReturning() int32 {
	n := g.surplus().waiting
	if g.Growth().RestartLeft() <= 0 && g.Growth().PauseLeft() > 0 {
		return n // What is lost now is not created before the pause is over.
	}
	for _, m := range g.Status.Members {
		w := g.At[m.Index]
		if g.IsSurplus(m.Index) && m.Index < g.Maximum && m.IsLost() && !m.HasLeft() && !g.IsEvicted(m.Index) &&
			(w == nil || w.UID == m.UID) {
			n++
		}
	}
	return n
}

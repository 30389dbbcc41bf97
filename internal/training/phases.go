package training

import (
	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Which list of phases a job runs depends on the status that is written at the API server:
//
//	no attempt ----------> newPhases -----> records attempt 1
//	an attempt ----------> runningPhases -> settles losses, then workerPhases change the workers
//	condition Suspended -> stoppedPhases -> deletes everything, then records the next attempt
//	Succeeded or Failed -> endedPhases ---> cleans up
//
// What one evaluation records, the next acts on once it is written. So a restart of the operator between any two steps
// repeats nothing and counts nothing twice.

// phase is one step of a plan. Phases run in their order until one says that the plan is done.
type phase struct {
	// name says what the phase does. why says what would go wrong without it, or if it ran elsewhere in the list.
	name, why string
	// do returns true if the phases after it must not run.
	do func(*planner) (done bool)
}

// always makes a phase of a function that never ends the plan.
func always(do func(*planner)) func(*planner) bool {
	return func(p *planner) bool {
		do(p)
		return false
	}
}

// grows makes a phase of a function that changes how much surplus the job has.
func grows(do func(*grower)) func(*planner) bool { return always(func(p *planner) { do(&grower{p}) }) }

// leaves makes a phase of a function by which workers leave.
func leaves(do func(*leaver)) func(*planner) bool { return always(func(p *planner) { do(&leaver{p}) }) }

// saves makes a phase of a function by which worker 0 saves checkpoints.
func saves(do func(*saver)) func(*planner) bool { return always(func(p *planner) { do(&saver{p}) }) }

// follows makes a phase of a function that follows the steps of the training.
func follows(do func(*follower)) func(*planner) bool {
	return always(func(p *planner) { do(&follower{p}) })
}

// runPhases runs phases until one says that the plan is done.
func (p *planner) runPhases(phases []phase) {
	for _, one := range phases {
		if done := one.do(p); done {
			return
		}
	}
}

// choosePhases returns the phases for where the job stands. It reads the written status, not the planned one: what this
// evaluation decides takes effect in the next.
func (p *planner) choosePhases() []phase {
	recorded := &p.Job.Status
	switch {
	case jobstate.IsFinished(recorded):
		return endedPhases
	case jobstate.IsStopped(recorded):
		return stoppedPhases
	case recorded.Attempt == nil:
		return newPhases
	}
	return runningPhases
}

var forceDelete = phase{
	"delete stuck pods by force", "if a node does not answer, no kubelet reports that its pod has ended, and the name stays taken",
	always((*planner).forceDelete),
}

var reviewAvoidedNodes = phase{
	"review avoided nodes", "a node that rejected a worker is avoided for a time only",
	always((*planner).reviewAvoidedNodes),
}

var endedPhases = []phase{
	forceDelete,
	{"clean up", "an ended job must hold no room", always((*planner).cleanUp)},
	{"delete if expired", "the user may limit how long an ended job stays", always((*planner).deleteIfExpired)},
}

var stoppedPhases = []phase{
	forceDelete,
	reviewAvoidedNodes,
	{"stay stopped", "a stopped job must hold no room, and begins its next attempt once it may run", always((*planner).stayStopped)},
}

var newPhases = []phase{
	forceDelete,
	reviewAvoidedNodes,
	{"stop", "a job that is created suspended must not begin", (*planner).stopBeforeBeginning},
	{"find an obstacle", "pods of a job that cannot run would hold a place in the queue", (*planner).findObstacle},
	{"begin", "the attempt must be in status before its first pod", always(func(p *planner) { p.recordAttempt(1) })},
}

// Losses and successes are settled before obstacles are looked for: an obstacle stops the job from creating pods, but must not
// hide that it has lost a worker or ended.
var runningPhases = []phase{
	forceDelete,
	{"shorten waits", "a clock that was put back must not lengthen what it noted before", always((*planner).shortenWaits)},
	reviewAvoidedNodes,
	{
		"note the outage", "once a status is written, what was measured before is not handed out again",
		always((*planner).noteOutage),
	},
	{"note the speed", "a step is weighed by what those who join add", follows((*follower).noteSpeed)},
	{"note progress", "a hang is told by the step that is noted here", follows((*follower).noteProgress)},
	{"draw the blueprint", "later phases make their objects from it", always((*planner).drawBlueprint)},
	{"restore marks", "by its labels others find a worker, and the ledger knows it", always((*planner).restoreMarks)},
	{"delete strays", "pods of earlier attempts would wait for ever in the rendezvous of theirs", leaves((*leaver).deleteStrays)},
	{"complete", "once the success policy is met, a worker that ends is no loss", (*planner).completeIfSucceeded},
	{
		"settle losses", "a loss must be counted before its pod, which is the evidence, is deleted or replaced",
		always(func(p *planner) { p.books.SettleLosses() }),
	},
	{"judge a hang", "a loss explains why no step comes, and is settled by itself", follows((*follower).judgeHang)},
	{"apply the outcome", "losses and hangs may end the job or its attempt", (*planner).applyOutcome},
	{"keep time", "the deadlines of the next phase are measured from what is noted here", always((*planner).keepTime)},
	{"end if overdue", "a job that waits or trains for longer than it may must give its room up", (*planner).endIfOverdue},
	{
		"heed preemption", "once recorded, a preemption holds even if its reason goes away while the job saves a checkpoint",
		always((*planner).heedPreemption),
	},
	{"stop", "a job that must not run leaves as a whole, after its checkpoint", (*planner).stopIfTold},
	{
		"change workers", "an obstacle, a limit or a missing checkpoint may end this list early, but not the one that it is in",
		always(func(p *planner) { p.runPhases(workerPhases) }),
	},
	{"request a checkpoint", "only now is it known whether any worker is about to leave or join", saves((*saver).tellCheckpoint)},
	{"tell a hang", "another obstacle is what a person must mend first", follows((*follower).tellHang)},
}

// workerPhases change the workers of the attempt towards what the spec asks. What takes workers away comes before what creates
// them, so that no pod is created that must leave at once.
var workerPhases = []phase{
	{"take room back", "surplus that left in vain for a gang returns without a cooldown", leaves((*leaver).takeRoomBack)},
	{"give way", "a waiting gang comes before surplus even if an obstacle stops this job", leaves((*leaver).giveWay)},
	{"note a step", "workers of a step get nodes one after another, and the first are no remainder", grows((*grower).noteStep)},
	{"leave a remainder", "surplus that is no whole step holds devices and trains nothing", grows((*grower).leaveRemainder)},
	{"apply the outcome", "a failure policy may answer the departure by ending the job or its attempt", (*planner).applyOutcome},
	{"find an obstacle", "no phase below may create what a user must mend first", (*planner).findObstacle},
	{"adopt the range", "running agents cannot follow a range that they were not started with", (*planner).adoptRange},
	{"adopt the model", "a core that fits on another model of accelerator need not wait for this one", (*planner).adoptModel},
	{"replace failed pods", "a failed pod holds the name of its worker", leaves((*leaver).replaceFailed)},
	{"release nodes", "waiting workers still avoid nodes that may be used again", leaves((*leaver).releaseNodes)},
	{"shrink to the maximum", "the phases below count the workers that stay", leaves((*leaver).shrinkToMaximum)},
	{"back off", "an attempt that began because of failures must not claim room at once", (*planner).backOff},
	{"hold for admission", "a gang makes others give way, so it waits until its profile admits it", (*planner).holdForAdmission},
	{
		"create the service", "workers find each other by its DNS names",
		always(func(p *planner) { p.d.CreateService = p.Service == "" }),
	},
	{"ask again", "a gang whose pods are refused would make others leave for nothing", (*planner).askAgain},
	{"create the core", "pods need their PodGroup, and surplus a running core", always((*planner).createCore)},
	{"grow", "surplus joins a core that runs", grows((*grower).growSurplus)},
}

// drawBlueprint notes what the pods and groups of this attempt are made from.
func (p *planner) drawBlueprint() {
	tier, _ := p.Tier()
	p.d.Blueprint = trainingpod.Blueprint{
		Job: p.Job, Attempt: p.Status.Attempt, Tier: tier, Queue: p.Queue.Name, Accelerators: p.Config.Accelerators,
		Claims: p.Claims, Near: p.Near, Shunned: p.Shunned,
	}
}

// applyOutcome ends the job, or starts its next attempt, if the losses lead to that.
func (p *planner) applyOutcome() (done bool) {
	switch o := p.books.Outcome; o.Action {
	case v1beta1.ActionFailJob:
		p.endJob(v1beta1.PhaseFailed, v1beta1.ConditionFailed, o.Reason, o.Message)
	case v1beta1.ActionCompleteJob:
		p.endJob(v1beta1.PhaseSucceeded, v1beta1.ConditionSucceeded, o.Reason, o.Message)
	case v1beta1.ActionRestartJob:
		p.recordAttempt(p.Status.Attempt.Number + 1)
	default:
		return false
	}
	return true
}

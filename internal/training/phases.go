package training

import (
	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// phase is one step of a plan. Phases are run in their order until one says that the plan is done.
type phase struct {
	// name says what the phase does, and why, what would go wrong without it or in another place.
	name, why string
	// do reports whether the phases after it must not run.
	do func(*planner) (done bool)
}

// always makes a phase of what never ends a plan.
func always(do func(*planner)) func(*planner) bool {
	return func(p *planner) bool {
		do(p)
		return false
	}
}

// run runs phases until one says that the plan is done.
func (p *planner) run(phases []phase) {
	for _, one := range phases {
		if done := one.do(p); done {
			return
		}
	}
}

// phases are the way of a job: through its end, its stop, its beginning, or its run.
func (p *planner) phases() []phase {
	recorded := &p.Job.Status
	switch {
	case jobstate.Finished(recorded):
		return endedPhases
	case jobstate.Stopped(recorded):
		return stoppedPhases
	case recorded.Attempt == nil:
		return newPhases
	}
	return runningPhases
}

var forceDelete = phase{
	"delete stuck pods by force", "on a node that does not answer no kubelet says that a pod has ended, and its name stays taken",
	always((*planner).forceDelete),
}

var reviewAvoidedNodes = phase{
	"review avoided nodes", "a node that rejected a worker may be used again after a time",
	always((*planner).reviewAvoidedNodes),
}

var endedPhases = []phase{
	forceDelete,
	{"clean up", "an ended job holds no room", always((*planner).cleanUp)},
	{"expire", "it is deleted when the user's time for it has passed", always((*planner).expire)},
}

var stoppedPhases = []phase{
	forceDelete,
	reviewAvoidedNodes,
	{"stay stopped", "a stopped job holds and asks for nothing, and goes on when it may", always((*planner).stayStopped)},
}

var newPhases = []phase{
	forceDelete,
	reviewAvoidedNodes,
	{"stop", "a job that is created suspended never begins", (*planner).stopBeforeBeginning},
	{"find an obstacle", "nothing is created that would have to wait for a mend", (*planner).findObstacle},
	{"begin", "an attempt is in status before its first pod", always(func(p *planner) { p.recordAttempt(1) })},
}

// What happened to the workers is settled first: an obstacle keeps the job from creating anything, not from seeing the end or a
// loss.
var runningPhases = []phase{
	forceDelete,
	reviewAvoidedNodes,
	{"draw the blueprint", "later phases create by it", always((*planner).drawBlueprint)},
	{"delete strays", "pods of other attempts would wait in a rendezvous of their own for ever", always((*planner).deleteStrays)},
	{"complete", "once the success policy is met, a worker that ends is no loss", (*planner).completeIfSucceeded},
	{
		"settle losses", "each is counted once, before anything is deleted or created for it",
		always(func(p *planner) { p.books.Settle() }),
	},
	{"conclude", "losses may end the job, or its attempt", (*planner).conclude},
	{"keep time", "the deadlines below are measured from what is noted here", always((*planner).keepTime)},
	{"end if overdue", "a job that waits or trains for longer than it may gives its room up", (*planner).endIfOverdue},
	{
		"heed preemption", "once it is recorded, the job stops even if the reason goes away meanwhile",
		always((*planner).heedPreemption),
	},
	{"stop", "the whole job leaves, once it has saved itself", (*planner).stopIfTold},
	{
		"change workers", "as far as no obstacle, limit or missing checkpoint is in the way",
		always(func(p *planner) { p.run(workerPhases) }),
	},
	{"request a checkpoint", "only now it is known whether anybody leaves", always((*planner).tellCheckpoint)},
}

// workerPhases bring the workers of the attempt to what the spec asks.
var workerPhases = []phase{
	{"take room back", "surplus that left in vain comes back without a cooldown", always((*planner).takeRoomBack)},
	{"give way", "a gang that waits comes before surplus, also while an obstacle is in the way", always((*planner).giveWay)},
	{"conclude", "a rule of the user's may answer the departure with the end of the job or its attempt", (*planner).conclude},
	{"find an obstacle", "nothing is created that would have to wait for a mend", (*planner).findObstacle},
	{"adopt the range", "workers that were started with another range cannot follow it", (*planner).adoptRange},
	{"adopt the model", "a core that fits on another model need not wait for this one", (*planner).adoptModel},
	{"replace failed pods", "their names must be free for new ones", always((*planner).replaceFailed)},
	{"release nodes", "waiting workers avoid nodes that may be used again", always((*planner).releaseNodes)},
	{"shrink to the maximum", "before anything is created", always((*planner).shrinkToMaximum)},
	{"back off", "an attempt that began because of failures claims no room for a while", (*planner).backOff},
	{"hold for admission", "the limits of the profile admit one job after another", (*planner).holdForAdmission},
	{"create the service", "pods find each other by it", always(func(p *planner) { p.d.CreateService = p.Service == "" })},
	{"ask again", "of a job whose pods are refused, one alone is tried, without a gang", (*planner).askAgain},
	{"create the core", "the gang's PodGroup before its pods, lowest index first", always((*planner).createCore)},
	{"grow", "surplus joins a core that runs", always((*planner).grow)},
}

// drawBlueprint notes what pods and groups of this attempt are made by.
func (p *planner) drawBlueprint() {
	tier, _ := p.Tier()
	p.d.Blueprint = trainingpod.Blueprint{
		Job: p.Job, Attempt: p.Status.Attempt, Tier: tier, Queue: p.Queue.Name, Accelerators: p.Config.Accelerators,
	}
}

// conclude ends the job, or starts its next attempt, if what happened leads to that.
func (p *planner) conclude() bool {
	switch o := p.books.Outcome; o.Action {
	case v1alpha1.ActionFailJob:
		p.end(v1alpha1.PhaseFailed, v1alpha1.ConditionFailed, o.Reason, o.Message)
	case v1alpha1.ActionCompleteJob:
		p.end(v1alpha1.PhaseSucceeded, v1alpha1.ConditionSucceeded, o.Reason, o.Message)
	case v1alpha1.ActionRestartJob:
		p.recordAttempt(p.Status.Attempt.Number + 1)
	default:
		return false
	}
	return true
}

// Package describe puts the state of a job into words: phase, counts, conditions, the sentence that kubectl shows, and the events
// and figures of a change. It decides nothing.
package describe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// Input is what a description is made from.
type Input struct {
	*jobstate.State
	// Obstacle is what keeps the job from continuing; nil for nothing.
	Obstacle *jobstate.Obstacle
	// Outcome is what the losses of this evaluation lead to.
	Outcome losses.Outcome
	// Deleting are the pods that this decision deletes.
	Deleting map[types.UID]bool
	// Full is true if the job has all the surplus that fits now, or that the limits of its profile allow.
	Full bool
	// Step is the growth that was weighed; nil if none was.
	Step *growth.Step
}

// description is an input and the standing that follows from it.
type description struct {
	Input
	standing
}

// standing is the situation of a job, with a reason and a sentence for it.
type standing struct {
	is              situation
	reason, message string
}

// situation is what a job is doing; it is in exactly one.
type situation int

const (
	// ended: the job has succeeded or failed.
	ended situation = iota + 1
	// stopping: the job must stop, and pods or PodGroups of it still exist.
	stopping
	// suspended: the job is stopped and holds no resources.
	suspended
	// restarting: all workers are created again.
	restarting
	// hindered: an obstacle keeps the operator from creating pods. The core may still run.
	hindered
	// completing: the success policy is met, and workers have yet to end.
	completing
	// running: the core runs.
	running
	// waiting: the core does not run.
	waiting
)

// WriteStatus writes counts, conditions and the sentence that kubectl shows into the planned status.
func WriteStatus(in Input) {
	d := &description{Input: in}
	d.countWorkers()
	d.nameAll()
	d.standing = d.findStanding()
	d.setPhase()
	d.setPlace()
	d.setReady()
	d.setScheduled()
	d.setFullSize()
	d.setReconciling()
	d.setStalled()
	d.setSuspended()
	d.setRangePending()
	d.setSchedulerConfigured()
	d.setOwnerChecked()
	d.Status.Reason, d.Status.Message = d.reason, text.ClipLine(d.message, conditions.MessageLimit)
	d.ConditionWriter().RestoreTransitionTimes(d.Job.Status.Conditions)
}

// WriteObstacle writes an obstacle into a planned status that the operator met when it carried the plan out.
func WriteObstacle(in Input) {
	d := &description{Input: in}
	d.standing = standing{hindered, in.Obstacle.Reason, in.Obstacle.Message}
	d.setReady()
	d.setScheduled()
	d.setFullSize()
	d.setReconciling()
	d.setStalled()
	d.Status.Reason, d.Status.Message = d.reason, text.ClipLine(d.message, conditions.MessageLimit)
	d.ConditionWriter().RestoreTransitionTimes(d.Job.Status.Conditions)
}

// findStanding finds the situation of the job. The first case that holds wins: an end outranks a stop, a stop a restart, and so
// on.
func (d *description) findStanding() standing {
	switch {
	case jobstate.IsFinished(d.Status):
		end := d.endCondition()
		return standing{ended, end.Reason, end.Message}
	case jobstate.IsStopped(d.Status):
		return d.stoppedStanding()
	case d.Outcome.Action == v1beta1.ActionRestartJob:
		return standing{restarting, d.Outcome.Reason, d.Outcome.Message}
	case d.Obstacle != nil:
		return standing{hindered, d.Obstacle.Reason, d.Obstacle.Message}
	case d.Status.MasterCompletionTime != nil:
		return standing{completing, v1beta1.ReasonCompleting, fmt.Sprintf(
			"%s. Still running, with a completion grace of %s: %s.",
			CapitalizeFirst(d.WhoSucceeded()), d.CompletionGrace(), WorkersNamed(d.ActiveWorkers()))}
	case d.coreRuns():
		return d.trainingStanding()
	}
	reason, message := d.whyWaiting()
	return standing{waiting, reason, message}
}

// coreRuns is CoreRuns, but false for a job without an attempt, whose core of 0 workers would count as running.
func (d *description) coreRuns() bool { return d.Minimum > 0 && d.CoreRuns() }

// endCondition is the condition with which the job ended.
func (d *description) endCondition() *metav1.Condition {
	if c := meta.FindStatusCondition(d.Status.Conditions, v1beta1.ConditionSucceeded); c != nil {
		return c
	}
	return meta.FindStatusCondition(d.Status.Conditions, v1beta1.ConditionFailed)
}

// trainingStanding is the standing of a job whose core runs: what it waits for to grow, or that it has its full size.
func (d *description) trainingStanding() standing {
	full, reason, message := d.describeGrowth()
	if full == metav1.ConditionTrue {
		reason = v1beta1.ReasonTraining
	}
	if d.rangePending() {
		a := d.Status.Attempt
		message += fmt.Sprintf(" Runs %d..%d; %d..%d takes effect after a restart (see condition RangePending).",
			a.MinReplicas, min(a.MaxReplicas, d.Maximum), d.Spec.MinReplicas, d.Spec.MaxReplicas)
	}
	return standing{running, reason, message}
}

// Package describe says how a job stands: phase, counts, conditions, the sentence that kubectl shows, and the events and figures
// of a change. It decides nothing.
package describe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// Input is what a description is made of, beside the state of the job.
type Input struct {
	*jobstate.State
	// Obstacle is what keeps the job from going on; nil for nothing.
	Obstacle *jobstate.Obstacle
	// Outcome is where the losses of this evaluation lead to.
	Outcome losses.Outcome
	// Deleting are the pods that are deleted now.
	Deleting map[types.UID]bool
	// Full is true when the job has as much surplus as fits or as the limits of its profile allow.
	Full bool
}

// description is an input, and how the job stands by it.
type description struct {
	Input
	standing
}

// standing is how a job stands, with a reason and a sentence for it.
type standing struct {
	is              situation
	reason, message string
}

// situation is one of the ways in which a job can stand.
type situation int

const (
	// ended: the job has succeeded or failed.
	ended situation = iota + 1
	// stopping: the job was told to stop, and pods or groups of it are still there.
	stopping
	// suspended: the job is stopped and holds nothing.
	suspended
	// restarting: all workers are created anew.
	restarting
	// hindered: an obstacle keeps the job from going on; its core may run all the same.
	hindered
	// completing: the success policy is met, and workers are still to end.
	completing
	// running: the core runs.
	running
	// waiting: the core does not run.
	waiting
)

// Status writes counts, conditions, and the words that kubectl shows, into the status that is planned.
func Status(in Input) {
	d := &description{Input: in}
	d.count()
	d.nameAll()
	d.standing = d.stand()
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
	d.Status.Reason, d.Status.Message = d.reason, text.Clip(d.message, conditions.MessageLimit)
	d.Conditions().Settle(d.Job.Status.Conditions)
}

// Obstruct overlays a status that was planned with an obstacle that was met afterwards.
func Obstruct(in Input) {
	d := &description{Input: in}
	d.standing = standing{hindered, in.Obstacle.Reason, in.Obstacle.Message}
	d.setReady()
	d.setScheduled()
	d.setFullSize()
	d.setReconciling()
	d.setStalled()
	d.Status.Reason, d.Status.Message = d.reason, text.Clip(d.message, conditions.MessageLimit)
	d.Conditions().Settle(d.Job.Status.Conditions)
}

// stand finds out how the job stands.
func (d *description) stand() standing {
	switch {
	case jobstate.Finished(d.Status):
		end := d.end()
		return standing{ended, end.Reason, end.Message}
	case jobstate.Stopped(d.Status):
		return d.stopped()
	case d.Outcome.Action == v1alpha1.ActionRestartJob:
		return standing{restarting, d.Outcome.Reason, d.Outcome.Message}
	case d.Obstacle != nil:
		return standing{hindered, d.Obstacle.Reason, d.Obstacle.Message}
	case d.Status.MasterCompletionTime != nil:
		return standing{completing, v1alpha1.ReasonCompleting, fmt.Sprintf(
			"%s; workers still to end within the completion grace of %s: %s.",
			Capital(d.WhoSucceeded()), d.CompletionGrace(), List(d.ActiveWorkers()))}
	case d.coreRuns():
		return d.training()
	}
	reason, message := d.whyWaiting()
	return standing{waiting, reason, message}
}

// coreRuns is false for a job without an attempt too.
func (d *description) coreRuns() bool { return d.Minimum > 0 && d.CoreRuns() }

// end is the condition with which the job ended.
func (d *description) end() *metav1.Condition {
	if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		return c
	}
	return meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionFailed)
}

// training is the standing of a job whose core runs: what it waits for to grow, or that it has its full size.
func (d *description) training() standing {
	full, reason, message := d.growth()
	if full == metav1.ConditionTrue {
		reason = v1alpha1.ReasonTraining
	}
	if d.rangePending() {
		message += fmt.Sprintf(" The spec asks for %d..%d, which condition RangePending explains.",
			d.Spec.MinReplicas, d.Spec.MaxReplicas)
	}
	return standing{running, reason, message}
}

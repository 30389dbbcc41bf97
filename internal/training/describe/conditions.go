package describe

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Each condition of a job is set here, by one function. The rows of a function are the situations, in their order.

// setReady tells whether the training goes on, or has come to a good end.
func (d *description) setReady() {
	switch {
	case d.is == ended && meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionSucceeded):
		d.set(v1alpha1.ConditionReady, metav1.ConditionTrue, d.reason, d.message)
	case d.is == running, d.is == hindered && d.coreRuns():
		d.set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonTraining, d.placedMessage())
	default:
		d.set(v1alpha1.ConditionReady, metav1.ConditionFalse, d.reason, d.message)
	}
}

// setScheduled tells whether Volcano has placed the core.
func (d *description) setScheduled() {
	switch {
	case d.is == ended:
		d.set(v1alpha1.ConditionScheduled, metav1.ConditionFalse, d.reason, "The job has ended.")
	case d.is == running, d.is == hindered && d.coreRuns():
		d.set(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonTraining, d.placedMessage())
	case d.is == completing, d.is == waiting && d.CorePlaced():
		d.set(v1alpha1.ConditionScheduled, metav1.ConditionTrue, d.reason, d.message)
	default:
		d.set(v1alpha1.ConditionScheduled, metav1.ConditionFalse, d.reason, d.message)
	}
}

// setFullSize tells whether the job has as many workers as it asks for, and what it waits for to grow.
func (d *description) setFullSize() {
	switch d.is {
	case ended:
		d.set(v1alpha1.ConditionFullSize, metav1.ConditionFalse, d.reason, "The job has ended.")
	case running:
		full, reason, message := d.growth()
		d.set(v1alpha1.ConditionFullSize, full, reason, message)
	case restarting, waiting:
		d.set(v1alpha1.ConditionFullSize, metav1.ConditionFalse, v1alpha1.ReasonCoreNotRunning, "The job grows once its core runs.")
	case stopping, suspended, hindered, completing:
		d.set(v1alpha1.ConditionFullSize, metav1.ConditionFalse, d.reason, d.message)
	}
}

// setReconciling tells that the job is on its way to what its spec says, in kstatus' sense.
func (d *description) setReconciling() {
	switch d.is {
	case stopping, restarting, completing, waiting:
		d.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, d.reason, d.message)
	case hindered:
		// A stalled job is on no way, and one whose core trains has arrived.
		if d.Obstacle.Stalled || d.coreRuns() {
			d.clear(v1alpha1.ConditionReconciling)
			return
		}
		d.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, d.reason, d.message)
	case ended, suspended, running:
		d.clear(v1alpha1.ConditionReconciling)
	}
}

// setStalled tells that the job waits for a user or an administrator to change something; kstatus knows a failed job as Stalled
// too.
func (d *description) setStalled() {
	failed := d.is == ended && !meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionSucceeded)
	if failed || d.is == hindered && d.Obstacle.Stalled {
		d.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, d.reason, d.message)
		return
	}
	d.clear(v1alpha1.ConditionStalled)
}

// setSuspended says why the job is stopped. That it is, and is no more, the planner records.
func (d *description) setSuspended() {
	switch {
	case d.is == ended:
		d.clear(v1alpha1.ConditionSuspended)
	case jobstate.Stopped(d.Status): // Also by an obstacle that keeps it from going on.
		d.set(v1alpha1.ConditionSuspended, metav1.ConditionTrue, d.reason, d.message)
	}
}

// rangePending is true for an attempt that cannot follow the range of the spec, in a job that goes on.
func (d *description) rangePending() bool {
	return d.is != ended && !jobstate.Stopped(d.Status) && d.Status.Attempt != nil && d.RangePending()
}

// setRangePending tells which part of the spec's range running workers cannot follow.
func (d *description) setRangePending() {
	if !d.rangePending() {
		d.clear(v1alpha1.ConditionRangePending)
		return
	}
	a := d.Status.Attempt
	d.set(v1alpha1.ConditionRangePending, metav1.ConditionTrue, v1alpha1.ReasonNextAttempt, fmt.Sprintf(
		"The spec asks for %d..%d workers; running workers were started with %d..%d and stay within it, with at most %d now. "+
			"The next attempt has the new range: set elasticity.onRangeChange to Restart, or suspend and resume the job, to start it.",
		d.Spec.MinReplicas, d.Spec.MaxReplicas, a.MinReplicas, a.MaxReplicas, d.Maximum))
}

// setSchedulerConfigured tells whether Volcano lets surplus give way by itself.
func (d *description) setSchedulerConfigured() {
	if d.VolcanoMissing != "" || d.is == ended || jobstate.Stopped(d.Status) {
		return
	}
	if len(d.SchedulerObstacles) == 0 {
		d.set(v1alpha1.ConditionSchedulerConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured,
			"Volcano's configuration lets surplus give way to waiting gangs.")
		return
	}
	d.set(v1alpha1.ConditionSchedulerConfigured, metav1.ConditionFalse, v1alpha1.ReasonIncomplete, fmt.Sprintf(
		"Volcano's configuration does not let surplus give way as it should: %s. Until it is changed (config/volcano), surplus "+
			"of jobs with shrinkBy Auto leaves on the operator's word, when a gang has starved.",
		strings.Join(d.SchedulerObstacles, "; ")))
}

// setOwnerChecked tells, with the first words of a job and for good, that its owner and its ServiceAccount were not checked. Both
// are checked when the job is created and do not change, so webhooks that are switched on or off later say nothing about them.
func (d *description) setOwnerChecked() {
	if !ownership.Unchecked(d.Job.Status.ObservedGeneration, d.WebhooksOff) {
		return
	}
	message := "The job came while the operator ran without webhooks (--webhooks=false), which set the owner: it has none, " +
		"and nothing can be counted for a person."
	if d.Spec.Owner != "" {
		message = fmt.Sprintf("The job came while the operator ran without webhooks (--webhooks=false), which check the owner: "+
			"%q is what its creator wrote.", d.Spec.Owner)
	}
	if len(d.Spec.OwnerGroups) > 0 {
		message += " The groups of spec.ownerGroups do not count."
	}
	if account, _ := trainingpod.Account(&d.Spec.Template.Spec); account != "" && account != trainingpod.DefaultAccount {
		message += fmt.Sprintf(" Nor did they check whether its creator may have workers run as ServiceAccount %q.", account)
	}
	d.set(v1alpha1.ConditionOwnerChecked, metav1.ConditionFalse, v1alpha1.ReasonWebhooksOff, message)
}

// set writes a condition whose transition time is now.
func (d *description) set(kind string, status metav1.ConditionStatus, reason, message string) {
	d.Conditions().Set(kind, status, reason, message)
}

func (d *description) clear(kinds ...string) { d.Conditions().Remove(kinds...) }

package describe

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Each condition of a job is set by one function here, after all decisions are made. Each reads the situation that findStanding
// found, so "who sets FullSize?" has one answer.

// setReady is True while the core trains, and after the job has succeeded.
func (d *description) setReady() {
	switch {
	case d.is == ended && meta.IsStatusConditionTrue(d.Status.Conditions, v1beta1.ConditionSucceeded):
		d.setCondition(v1beta1.ConditionReady, metav1.ConditionTrue, d.reason, d.message)
	case d.is == running, d.is == hindered && d.coreRuns():
		d.setCondition(v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonTraining, d.placedMessage())
	default:
		d.setCondition(v1beta1.ConditionReady, metav1.ConditionFalse, d.reason, d.message)
	}
}

// setScheduled is True once Volcano has placed the whole core.
func (d *description) setScheduled() {
	switch {
	case d.is == ended:
		d.setCondition(v1beta1.ConditionScheduled, metav1.ConditionFalse, d.reason, "The job has ended.")
	case d.is == running, d.is == hindered && d.coreRuns():
		d.setCondition(v1beta1.ConditionScheduled, metav1.ConditionTrue, v1beta1.ReasonTraining, d.placedMessage())
	case d.is == completing, d.is == waiting && d.CorePlaced():
		d.setCondition(v1beta1.ConditionScheduled, metav1.ConditionTrue, d.reason, d.message)
	default:
		d.setCondition(v1beta1.ConditionScheduled, metav1.ConditionFalse, d.reason, d.message)
	}
}

// setFullSize is True if the job has all the workers it may have, and says otherwise what it waits for.
func (d *description) setFullSize() {
	switch d.is {
	case ended:
		d.setCondition(v1beta1.ConditionFullSize, metav1.ConditionFalse, d.reason, "The job has ended.")
	case running:
		full, reason, message := d.describeGrowth()
		d.setCondition(v1beta1.ConditionFullSize, full, reason, message)
	case restarting, waiting:
		d.setCondition(v1beta1.ConditionFullSize, metav1.ConditionFalse, v1beta1.ReasonCoreNotRunning,
			"The job grows once its core runs.")
	case stopping, suspended, hindered, completing:
		d.setCondition(v1beta1.ConditionFullSize, metav1.ConditionFalse, d.reason, d.message)
	}
}

// setReconciling is True while the operator works towards the spec, as kstatus defines it: tools wait until it is gone.
func (d *description) setReconciling() {
	switch d.is {
	case stopping, restarting, completing, waiting:
		d.setCondition(v1beta1.ConditionReconciling, metav1.ConditionTrue, d.reason, d.message)
	case hindered:
		// A stalled job makes no progress until a person acts, and one whose core trains is where a tool waits for it to be.
		if d.Obstacle.Stalled || d.coreRuns() {
			d.removeConditions(v1beta1.ConditionReconciling)
			return
		}
		d.setCondition(v1beta1.ConditionReconciling, metav1.ConditionTrue, d.reason, d.message)
	case ended, suspended, running:
		d.removeConditions(v1beta1.ConditionReconciling)
	}
}

// setStalled is True if a user or an administrator must change something, and for a failed job, which kstatus reports by it.
func (d *description) setStalled() {
	failed := d.is == ended && !meta.IsStatusConditionTrue(d.Status.Conditions, v1beta1.ConditionSucceeded)
	if failed || d.is == hindered && d.Obstacle.Stalled {
		d.setCondition(v1beta1.ConditionStalled, metav1.ConditionTrue, d.reason, d.message)
		return
	}
	d.removeConditions(v1beta1.ConditionStalled)
}

// setSuspended gives a condition its words that the planner has set: the planner decides when a job is stopped and resumes.
func (d *description) setSuspended() {
	switch {
	case d.is == ended:
		d.removeConditions(v1beta1.ConditionSuspended)
	case jobstate.IsStopped(d.Status):
		d.setCondition(v1beta1.ConditionSuspended, metav1.ConditionTrue, d.reason, d.message)
	}
}

// rangePending is true while the running attempt cannot follow the range of the spec.
func (d *description) rangePending() bool { return d.goesOn() && d.RangePending() }

// goesOn is true for a job that has an attempt and is neither stopped nor ended.
func (d *description) goesOn() bool {
	return d.is != ended && !jobstate.IsStopped(d.Status) && d.Status.Attempt != nil
}

// setRangePending is True while something of the spec has to wait for the next attempt: running agents cannot follow another
// range or number of processes, and the priority of a pod cannot change. What a new job may not have either waits until it
// may.
func (d *description) setRangePending() {
	a := d.Status.Attempt
	if !d.goesOn() {
		d.removeConditions(v1beta1.ConditionRangePending)
		return
	}
	reason, waits := v1beta1.ReasonNextAttempt, []string(nil)
	if d.RangePending() {
		waits = append(waits, fmt.Sprintf(
			"The workers were started for %d..%d and keep that range, with at most %d now. The range of the spec, %d..%d, takes effect "+
				"after a restart: set elasticity.rangeUpdate to Restart, or suspend and resume the job.",
			a.MinReplicas, a.MaxReplicas, d.Maximum, d.Spec.MinReplicas, d.Spec.MaxReplicas))
	}
	if next, _ := d.NextTier(); next.Name != a.Tier && next.Name != "" && a.Tier != "" {
		waits = append(waits, fmt.Sprintf("The workers were started in tier %s and keep it. The tier of the spec, %s, takes effect "+
			"after a restart: suspend and resume the job.", a.Tier, next.Name))
	}
	if next := d.NextProcesses(); next != a.NprocPerNode {
		waits = append(waits, fmt.Sprintf("The workers were started with %s and keep that. The spec's %s takes effect after "+
			"a restart: suspend and resume the job.", processesNamed(a.NprocPerNode), processesNamed(next)))
	}
	for _, refused := range []struct {
		by   *jobstate.Obstacle
		what string
	}{
		{d.Refused.Tier, fmt.Sprintf("The job keeps tier %s, because it may not have the tier of its spec, %s.", a.Tier, d.Spec.Tier)},
		{d.Refused.Processes, fmt.Sprintf("The job keeps %s.", processesNamed(a.NprocPerNode))},
	} {
		if refused.by != nil {
			reason = refused.by.Reason
			waits = append(waits, refused.what+" "+refused.by.Message)
		}
	}
	if len(waits) == 0 {
		d.removeConditions(v1beta1.ConditionRangePending)
		return
	}
	d.setCondition(v1beta1.ConditionRangePending, metav1.ConditionTrue, reason, strings.Join(waits, " "))
}

// processesNamed names a value of framework.nprocPerNode; 0 for none.
func processesNamed(n int32) string {
	if n == 0 {
		return "the default of framework.nprocPerNode"
	}
	return fmt.Sprintf("framework.nprocPerNode %d", n)
}

// setSchedulerConfigured is True if Volcano's configuration lets it take surplus for waiting gangs.
func (d *description) setSchedulerConfigured() {
	if d.VolcanoMissing != "" || d.is == ended || jobstate.IsStopped(d.Status) {
		return
	}
	if len(d.SchedulerObstacles) == 0 {
		d.setCondition(v1beta1.ConditionSchedulerConfigured, metav1.ConditionTrue, v1beta1.ReasonConfigured,
			"Volcano's configuration lets surplus give way to waiting gangs.")
		return
	}
	d.setCondition(v1beta1.ConditionSchedulerConfigured, metav1.ConditionFalse, v1beta1.ReasonIncomplete, fmt.Sprintf(
		"Volcano's configuration keeps it from taking surplus for waiting gangs: %s. Until you change it (config/volcano), the "+
			"operator deletes surplus of jobs with shrink.initiator Auto itself once a gang has waited too long.",
		strings.Join(d.SchedulerObstacles, "; ")))
}

// setOwnerChecked is False, and stays so, for a job that was created or changed while no webhook checked its owner, submitter and
// ServiceAccount. Which fields a change concerned is not on record, so any change counts.
func (d *description) setOwnerChecked() {
	if !ownership.IsUnchecked(d.Job.Generation, d.Job.Status.ObservedGeneration, d.WebhooksOff) {
		return
	}
	message := "The operator ran without webhooks (--webhooks=false) when the job was created or changed. Webhooks set the owner, " +
		"so the job has none, and its use counts for no user."
	if d.Spec.Owner != "" {
		message = fmt.Sprintf("The operator ran without webhooks (--webhooks=false) when the job was created or changed. Webhooks "+
			"check the owner, so spec.owner %q is only what a user wrote.", d.Spec.Owner)
	}
	if d.Spec.Submitter != nil {
		message += " The groups in spec.submitter do not count."
	}
	if account, _ := trainingpod.ServiceAccountOf(&d.Spec.Template.Spec); account != "" && account != trainingpod.DefaultAccount {
		message += fmt.Sprintf(" It was not checked whether that user may use ServiceAccount %q.", account)
	}
	d.setCondition(v1beta1.ConditionOwnerChecked, metav1.ConditionFalse, v1beta1.ReasonWebhooksOff, message)
}

func (d *description) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	d.ConditionWriter().Set(kind, status, reason, message)
}

func (d *description) removeConditions(kinds ...string) { d.ConditionWriter().Remove(kinds...) }

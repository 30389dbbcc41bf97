package merging

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// One function sets each condition of a merge. They run after writeWords has chosen reason and message.

func (t *description) setConditions() {
	t.setOwnerChecked()
	t.setStoreUnavailable()
	t.setReconciling()
	t.setStalled()
	t.setSuspended()
	t.setReady()
	t.conditionWriter().RestoreTransitionTimes(t.job.Object.Status.Conditions)
}

// setReady sets Ready. A merge that waits for its time or for increments, or that has merged and has no schedule, is Ready.
func (t *description) setReady() {
	t.setCondition(v1beta1.ConditionReady, conditionStatus(t.held != nil && t.held.isAtRest()), t.st.Reason, t.sentence)
}

// setReconciling is for a merge that makes progress, or waits for something that needs no action of a person.
func (t *description) setReconciling() {
	if t.held != nil && (t.held.stalled || t.held.isSuspension() || t.held.isAtRest()) {
		t.removeConditions(v1beta1.ConditionReconciling)
		return
	}
	t.setCondition(v1beta1.ConditionReconciling, metav1.ConditionTrue, t.st.Reason, t.sentence)
}

// setStalled is for a merge that waits until a user or an administrator changes something.
func (t *description) setStalled() {
	if t.held == nil || !t.held.stalled {
		t.removeConditions(v1beta1.ConditionStalled)
		return
	}
	t.setCondition(v1beta1.ConditionStalled, metav1.ConditionTrue, t.st.Reason, t.sentence)
}

// setSuspended is for a merge that its user has suspended.
func (t *description) setSuspended() {
	if t.held == nil || t.held.stalled || !t.held.isSuspension() {
		t.removeConditions(v1beta1.ConditionSuspended)
		return
	}
	t.setCondition(v1beta1.ConditionSuspended, metav1.ConditionTrue, t.st.Reason, t.sentence)
}

// isSuspension tells whether the obstacle is spec.suspend.
func (o *obstacle) isSuspension() bool { return o.reason == v1beta1.ReasonSuspended }

// isAtRest is true for an obstacle that needs no action: there is nothing to merge yet, or nothing more to merge.
func (o *obstacle) isAtRest() bool {
	return !o.stalled &&
		(o.reason == v1beta1.ReasonNotDue || o.reason == v1beta1.ReasonNoIncrements || o.reason == v1beta1.ReasonMerged)
}

func conditionStatus(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// setStoreUnavailable is for a merge whose store cannot be read.
func (t *description) setStoreUnavailable() {
	switch s := t.job.Store; {
	case s == nil: // The condition of the process before this one holds until this one has read the store.
	case s.Trouble == nil:
		t.removeConditions(v1beta1.ConditionStoreUnavailable)
	default:
		t.setCondition(v1beta1.ConditionStoreUnavailable, metav1.ConditionTrue, s.Trouble.Reason, s.Trouble.Message)
	}
}

// setOwnerChecked records, for good, which claims of the spec no webhook has checked, once a job was created or changed without.
func (t *description) setOwnerChecked() {
	if !ownership.IsUnchecked(t.job.Object.Generation, t.job.Object.Status.ObservedGeneration, t.p.o.WebhooksOff) {
		return
	}
	unchecked := []string{}
	if t.spec.Owner != "" {
		unchecked = append(unchecked, fmt.Sprintf("that %q owns it", t.spec.Owner))
	}
	if secret := t.spec.Store.CredentialsSecret(); secret != "" {
		unchecked = append(unchecked, "that its creator may read Secret "+secret)
	}
	if account, _ := trainingpod.ServiceAccountOf(&t.spec.Template.Spec); account != "" && account != trainingpod.DefaultAccount {
		unchecked = append(unchecked, "that its creator may have pods run as ServiceAccount "+account)
	}
	message := "The MergeJob was created or changed while the operator ran without webhooks (--webhooks=false), which set and " +
		"check the owner."
	if len(unchecked) > 0 {
		message += " No webhook checked " + joinList(unchecked) + "."
	}
	if t.spec.Submitter != nil {
		message += " Tideline ignores spec.submitter."
	}
	t.setCondition(v1beta1.ConditionOwnerChecked, metav1.ConditionFalse, v1beta1.ReasonWebhooksOff, message)
}

func (t *description) conditionWriter() conditions.Writer {
	return conditions.Writer{List: &t.st.Conditions, Generation: t.job.Object.Generation, Now: metaTime(t.p.now)}
}

func (t *description) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	t.conditionWriter().Set(kind, status, reason, message)
}

func (t *description) removeConditions(kinds ...string) { t.conditionWriter().Remove(kinds...) }

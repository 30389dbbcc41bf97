package merging

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Each condition of a merge is set here, by one function, after it was decided what the merge says of itself.

func (t *description) setConditions() {
	t.setOwnerChecked()
	t.setStoreUnavailable()
	t.setReconciling()
	t.setStalled()
	t.setSuspended()
	t.setReady()
	t.conditions().Settle(t.job.Object.Status.Conditions)
}

// setReady tells whether nothing is left to do: a merge that waits for its time or for increments, or has merged for good, is
// Ready.
func (t *description) setReady() {
	t.set(v1alpha1.ConditionReady, status(t.held != nil && t.held.rests()), t.st.Reason, t.sentence)
}

// setReconciling tells that the merge is on its way, or waits for what mends itself.
func (t *description) setReconciling() {
	if t.held != nil && (t.held.stalled || t.held.suspends() || t.held.rests()) {
		t.unset(v1alpha1.ConditionReconciling)
		return
	}
	t.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, t.st.Reason, t.sentence)
}

// setStalled tells that the merge waits for a user or an administrator to change something.
func (t *description) setStalled() {
	if t.held == nil || !t.held.stalled {
		t.unset(v1alpha1.ConditionStalled)
		return
	}
	t.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, t.st.Reason, t.sentence)
}

// setSuspended tells that the user has stopped the merge.
func (t *description) setSuspended() {
	if t.held == nil || t.held.stalled || !t.held.suspends() {
		t.unset(v1alpha1.ConditionSuspended)
		return
	}
	t.set(v1alpha1.ConditionSuspended, metav1.ConditionTrue, t.st.Reason, t.sentence)
}

// suspends is true for an obstacle that the user put in the way.
func (o *obstacle) suspends() bool { return o.reason == v1alpha1.ReasonSuspended }

// rests is true for an obstacle that is none: there is nothing to merge, or not yet.
func (o *obstacle) rests() bool {
	return !o.stalled &&
		(o.reason == v1alpha1.ReasonNotDue || o.reason == v1alpha1.ReasonNoIncrements || o.reason == v1alpha1.ReasonMerged)
}

func status(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// setStoreUnavailable tells whether the store can be read.
func (t *description) setStoreUnavailable() {
	switch s := t.job.Store; {
	case s == nil: // What was said last stands until this process has seen it.
	case s.Trouble == nil:
		t.unset(v1alpha1.ConditionStoreUnavailable)
	default:
		t.set(v1alpha1.ConditionStoreUnavailable, metav1.ConditionTrue, s.Trouble.Reason, s.Trouble.Message)
	}
}

// setOwnerChecked tells, with the first words of a job and for good, that what depends on its creator was not checked.
func (t *description) setOwnerChecked() {
	if !ownership.Unchecked(t.job.Object.Status.ObservedGeneration, t.p.o.WebhooksOff) {
		return
	}
	unchecked := []string{}
	if t.spec.Owner != "" {
		unchecked = append(unchecked, fmt.Sprintf("that %q answers for it", t.spec.Owner))
	}
	if secret := t.spec.Store.CredentialsSecretName; secret != "" {
		unchecked = append(unchecked, "that its creator may read Secret "+secret)
	}
	if account, _ := trainingpod.Account(&t.spec.Template.Spec); account != "" && account != trainingpod.DefaultAccount {
		unchecked = append(unchecked, "that its creator may have pods run as ServiceAccount "+account)
	}
	message := "The MergeJob came while the operator ran without webhooks (--webhooks=false), which set and check the owner."
	if len(unchecked) > 0 {
		message += " Nobody checked " + joinList(unchecked) + "."
	}
	if len(t.spec.OwnerGroups) > 0 {
		message += " The groups of spec.ownerGroups do not count."
	}
	t.set(v1alpha1.ConditionOwnerChecked, metav1.ConditionFalse, v1alpha1.ReasonWebhooksOff, message)
}

// conditions writes those of the merge.
func (t *description) conditions() conditions.Writer {
	return conditions.Writer{List: &t.st.Conditions, Generation: t.job.Object.Generation, Now: metaTime(t.p.now)}
}

func (t *description) set(kind string, status metav1.ConditionStatus, reason, message string) {
	t.conditions().Set(kind, status, reason, message)
}

func (t *description) unset(kinds ...string) { t.conditions().Remove(kinds...) }

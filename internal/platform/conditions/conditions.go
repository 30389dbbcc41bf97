// Package conditions writes the conditions of a status in the same form for all kinds, and without changes while an object is
// at rest.
package conditions

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// MessageLimit is the longest message of a condition or a status, in bytes: what the schemas allow a status. Kubernetes allows a
// condition eight times as many, which is too long to read.
const MessageLimit = 4096

// order is the order in which conditions are listed, for all kinds.
var order = []string{
	v1beta1.ConditionReady, v1beta1.ConditionReconciling, v1beta1.ConditionStalled, v1beta1.ConditionSuspended,
	v1beta1.ConditionScheduled, v1beta1.ConditionSchedulerConfigured, v1beta1.ConditionFullSize, v1beta1.ConditionRangePending,
	v1beta1.ConditionPagesRouted, v1beta1.ConditionStoreUnavailable, v1beta1.ConditionOwnerChecked,
	v1beta1.ConditionNamespaceConflict, v1beta1.ConditionOvercommitted, v1beta1.ConditionBudgetExceeded,
	v1beta1.ConditionLedgerVolatile, v1beta1.ConditionOtherWorkloadsRefused, v1beta1.ConditionAcceleratorsIdle,
	v1beta1.ConditionIdleNotebooksStopped, v1beta1.ConditionDirectoryFaulty, v1beta1.ConditionMailed,
	v1beta1.ConditionSucceeded, v1beta1.ConditionFailed,
}

// Writer writes conditions of an object's generation, at a time.
type Writer struct {
	List       *[]metav1.Condition
	Generation int64
	Now        metav1.Time
}

// Set writes a condition whose transition time is now; a message that is too long is cut.
func (w Writer) Set(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(w.List, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: text.ClipLine(message, MessageLimit),
		ObservedGeneration: w.Generation, LastTransitionTime: w.Now,
	})
}

// Remove removes conditions, as far as they exist.
func (w Writer) Remove(kinds ...string) {
	for _, kind := range kinds {
		meta.RemoveStatusCondition(w.List, kind)
	}
}

// RestoreTransitionTimes restores the transition time of every condition whose status is the same as before, and sorts them, so
// that an object at rest does not change.
func (w Writer) RestoreTransitionTimes(before []metav1.Condition) {
	for i := range *w.List {
		c := &(*w.List)[i]
		if was := meta.FindStatusCondition(before, c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
	slices.SortFunc(*w.List, func(a, b metav1.Condition) int { return slices.Index(order, a.Type) - slices.Index(order, b.Type) })
}

// BecameTrue returns the condition of that type if it was not True before, or has another reason now; nil otherwise.
func BecameTrue(before, after []metav1.Condition, kind string) *metav1.Condition {
	is, was := meta.FindStatusCondition(after, kind), meta.FindStatusCondition(before, kind)
	if is == nil || is.Status != metav1.ConditionTrue || (was != nil && was.Status == is.Status && was.Reason == is.Reason) {
		return nil
	}
	return is
}

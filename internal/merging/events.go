package merging

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// EventsBetween are the events of a change from one written status to the next. It is called once per write, after the write
// succeeded.
func EventsBetween(before, after *v1beta1.MergeJobStatus) []statuspace.Event {
	var events []statuspace.Event
	add := func(kind, reason, message string) {
		events = append(events, statuspace.Event{Type: kind, Reason: reason, Message: clip(message, messageLimit)})
	}
	if said := sizing.DescribeChange(before.Sizing, after.Sizing); said != "" {
		add(corev1.EventTypeNormal, v1beta1.EventSized, said)
	}
	if r := after.Run; r != nil && r.RunTime != nil && (before.Run == nil || before.Run.RunTime == nil) {
		add(corev1.EventTypeNormal, v1beta1.EventStarted, startedMessage(after))
	}
	if r := after.Run; r != nil && r.Outcome == v1beta1.OutcomeWithdrawn && (before.Run == nil || before.Run.Outcome != r.Outcome) {
		add(withdrawalKind(r), v1beta1.EventWithdrawn, r.Message)
	}
	if ended := EndedRun(before, after); ended != nil {
		switch ended.Outcome {
		case v1beta1.OutcomeMerged:
			add(corev1.EventTypeNormal, v1beta1.EventMerged, ended.Message)
		case v1beta1.OutcomeSuspended:
			add(corev1.EventTypeNormal, v1beta1.EventSuspended, ended.Message)
		default:
			add(corev1.EventTypeWarning, string(ended.Outcome), ended.Message)
		}
	}
	for _, c := range newObstacles(before, after) {
		add(corev1.EventTypeWarning, c.Reason, c.Message)
	}
	if after.Reason != before.Reason && after.Reason == v1beta1.ReasonNeverFits {
		add(corev1.EventTypeWarning, after.Reason, after.Message)
	}
	if after.Reason != before.Reason && after.Reason == v1beta1.ReasonAwaitingApproval {
		add(corev1.EventTypeNormal, after.Reason, after.Message)
	}
	return events
}

// withdrawalKind: a merge that goes ahead is taken back in the normal course of things.
func withdrawalKind(r *v1beta1.MergeRun) string {
	if r.Reason == v1beta1.ReasonGoingAhead {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

func startedMessage(st *v1beta1.MergeJobStatus) string {
	waited := ""
	if st.QueueTime != nil {
		waited = fmt.Sprintf(", %s after it joined the line", st.Run.RunTime.Sub(st.QueueTime.Time).Round(time.Second))
	}
	ahead := ""
	if a := st.Run.Ahead; a != nil {
		ahead = fmt.Sprintf(" It went ahead of %s: %s.", a.Head.Name, whyAhead(a, a.Head.Name))
	}
	return fmt.Sprintf("Run %s started with %s in pool %s%s.%s", st.Run.ID, count(st.Run.MinReplicas, "pod"), st.Pool, waited, ahead)
}

// newObstacles are the conditions that became true and stop the merge. Two of them may have the same reason, which makes one
// event.
func newObstacles(before, after *v1beta1.MergeJobStatus) []*metav1.Condition {
	var all []*metav1.Condition
	for _, kind := range []string{v1beta1.ConditionStalled, v1beta1.ConditionStoreUnavailable} {
		c := conditions.BecameTrue(before.Conditions, after.Conditions, kind)
		if c != nil && (len(all) == 0 || all[0].Reason != c.Reason) {
			all = append(all, c)
		}
	}
	return all
}

// EndedRun is the run that ended from one written status to the next; nil for none.
func EndedRun(before, after *v1beta1.MergeJobStatus) *v1beta1.MergeResult {
	if len(after.History) == 0 || (len(before.History) > 0 && before.History[0].Run == after.History[0].Run) {
		return nil
	}
	return &after.History[0]
}

package decisionlog

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// MergeDecisions is TrainingDecisions for a merge.
func MergeDecisions(job *v1beta1.MergeJob, before, after *v1beta1.MergeJobStatus, now time.Time) []ledger.Decision {
	return newDecisions(ofMerge(job, before), ofMerge(job, after), isObstructed(before.Conditions), now)
}

func ofMerge(job *v1beta1.MergeJob, st *v1beta1.MergeJobStatus) []ledger.Decision {
	t := &telling{job: job, figures: map[string]string{
		Object: v1beta1.MergeJobKind, Queue: st.Pool, Profile: st.Profile, "tier": st.Tier,
		Task: job.Name, User: job.Annotations[v1beta1.AnnotationOwner],
	}}
	turn := ""
	if st.Position != nil {
		t.position = *st.Position
	}
	if st.QueueTime != nil {
		turn = timeID(*st.QueueTime)
	}
	if st.BlockedBy != nil {
		t.figures["head"], t.figures["shortfall"] = nameFrom(job.Namespace, st.BlockedBy.Head), st.BlockedBy.Shortfall
	}
	if run := st.Run; run != nil {
		t.attempt, turn = run.ID, fmt.Sprintf("%s-%d", run.ID, run.Attempt)
	}
	t.addWait(st.Conditions, turn)
	delete(t.figures, "head")
	delete(t.figures, "shortfall")
	if run := st.Run; run != nil {
		t.addRun(st, run, turn)
	}
	c := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionSuspended)
	if c != nil && c.Status == metav1.ConditionTrue {
		t.addDecision(c.LastTransitionTime, Suspended, timeID(c.LastTransitionTime), ledger.Decision{Reason: c.Reason,
			Message: c.Message})
	}
	if len(st.History) > 0 {
		last := &st.History[0]
		t.attempt = last.Run
		t.addDecision(last.EndTime, Ended, last.Run, ledger.Decision{Reason: string(last.Outcome), Message: last.Message},
			"attempts", formatNumber(last.Attempts), "increments", formatNumber(last.Increments))
	}
	return t.decided
}

// nameFrom names a gang as readers in a namespace know it: by its name alone where that is theirs too. It is empty for nil.
func nameFrom(namespace string, r *v1beta1.GangRef) string {
	switch {
	case r == nil:
		return ""
	case r.Namespace == namespace:
		return r.Name
	}
	return r.String()
}

// addRun tells of a run that goes on.
func (t *telling) addRun(st *v1beta1.MergeJobStatus, run *v1beta1.MergeRun, id string) {
	if run.RunTime != nil {
		from := run.AskTime
		if st.QueueTime != nil {
			from = *st.QueueTime
		}
		waited := run.RunTime.Sub(from.Time)
		t.addDecision(*run.RunTime, Ran, id, ledger.Decision{
			Message: fmt.Sprintf("Run %s began in pool %s with %d pods, %s after it joined the line.", run.ID, st.Pool, run.MinReplicas,
				waited.Round(time.Second)),
		}, WaitedSeconds, formatNumber(int64(waited.Seconds())), "increments", formatNumber(run.Increments))
	}
	if run.Outcome == v1beta1.OutcomeWithdrawn && run.EndTime != nil {
		t.addDecision(*run.EndTime, Withdrawn, id, ledger.Decision{Reason: run.Reason, Message: run.Message},
			lostFigures(run.RunTime)...)
	}
}

package elastic

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// Event is a line of the story that `kubectl describe` tells.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type            string
	Reason, Message string
}

// Events tells what changed from one written status to the next. It is called once per write, after the write succeeded.
func Events(before, after *v1alpha1.ElasticTrainingJobStatus) []Event {
	var events []Event
	add := func(kind, reason, format string, args ...any) {
		events = append(events, Event{Type: kind, Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	if c := becameTrue(before, after, v1alpha1.ConditionStalled); c != "" && !finished(after) {
		add(corev1.EventTypeWarning, after.Reason, "%s", c)
	}
	if before.StartTime == nil && after.StartTime != nil {
		add(corev1.EventTypeNormal, v1alpha1.EventScheduled, "The core of %s runs in queue %s, %s after submission.",
			workers(after.Attempt.MinReplicas), after.Queue, time.Duration(*after.WaitSeconds)*time.Second)
	}
	if gone := newlyEvicted(before, after); len(gone) > 0 {
		add(corev1.EventTypeNormal, v1alpha1.EventGaveWay, "Gave way to a waiting gang: %s left; %d ready go on.",
			workersNamed(gone), after.ReadyReplicas)
	}
	if after.Restarts > before.Restarts && after.LastFailure != nil {
		f := after.LastFailure
		add(corev1.EventTypeWarning, v1alpha1.EventWorkerLost, "Lost worker %d (%s), which counts as restart %d; it is created anew.",
			f.Worker, describe(&Worker{Reason: f.Reason, Message: f.Message}), after.Restarts)
	}
	if grew(before, after) {
		add(corev1.EventTypeNormal, v1alpha1.EventGrew, "Grew from %d to %d ready workers.", before.ReadyReplicas, after.ReadyReplicas)
	}
	if c := becameTrue(before, after, v1alpha1.ConditionRangePending); c != "" {
		add(corev1.EventTypeNormal, v1alpha1.ConditionRangePending, "%s", c)
	}
	if c := becameTrue(before, after, v1alpha1.ConditionSucceeded); c != "" {
		add(corev1.EventTypeNormal, v1alpha1.ConditionSucceeded, "%s", c)
	}
	if c := becameTrue(before, after, v1alpha1.ConditionFailed); c != "" {
		add(corev1.EventTypeWarning, v1alpha1.ConditionFailed, "%s", c)
	}
	return events
}

// becameTrue returns the message of a condition that was not True before, or whose reason is another one now.
func becameTrue(before, after *v1alpha1.ElasticTrainingJobStatus, kind string) string {
	is, was := meta.FindStatusCondition(after.Conditions, kind), meta.FindStatusCondition(before.Conditions, kind)
	if is == nil || is.Status != "True" || (was != nil && was.Status == is.Status && was.Reason == is.Reason) {
		return ""
	}
	return is.Message
}

func newlyEvicted(before, after *v1alpha1.ElasticTrainingJobStatus) []int32 {
	if after.Elasticity == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(after.Elasticity.Evicted), func(i int32) bool {
		return before.Elasticity != nil && slices.Contains(before.Elasticity.Evicted, i)
	})
}

// grew is true when a running job has more ready workers than before and is not still in the middle of growing.
func grew(before, after *v1alpha1.ElasticTrainingJobStatus) bool {
	settled := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionFullSize)
	return before.StartTime != nil && !finished(after) && after.ReadyReplicas > before.ReadyReplicas &&
		settled != nil && settled.Reason != v1alpha1.ReasonGrowing &&
		after.ReadyReplicas > after.Attempt.MinReplicas
}

// Explain overlays a status with what kept its decision from being carried out.
func Explain(o Observed, now time.Time, d Decision, obstacle Obstacle) v1alpha1.ElasticTrainingJobStatus {
	p := newPlanner(o, now)
	p.d.Status, p.obstacle = d.Status, &obstacle
	p.st = &p.d.Status
	if !finished(p.st) && p.st.Attempt != nil {
		p.sayObstacle(obstacle)
	}
	return p.d.Status
}

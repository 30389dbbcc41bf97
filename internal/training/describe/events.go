package describe

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// story collects the events of one transition.
type story struct {
	before, after *v1alpha1.ElasticTrainingJobStatus
	events        []statuspace.Event
}

// Events tells what changed from one written status to the next. It is called once per write, after the write succeeded.
func Events(before, after *v1alpha1.ElasticTrainingJobStatus) []statuspace.Event {
	s := &story{before: before, after: after}
	s.tellObstacles()
	if said := sizing.Tell(before.Sizing, after.Sizing); said != "" {
		s.add(corev1.EventTypeNormal, v1alpha1.EventSized, "%s", said)
	}
	s.tellWorkers()
	for kind, condition := range map[string]string{
		corev1.EventTypeNormal: v1alpha1.ConditionSucceeded, corev1.EventTypeWarning: v1alpha1.ConditionFailed,
	} {
		if c := conditions.BecameTrue(s.before.Conditions, s.after.Conditions, condition); c != nil {
			s.add(kind, condition, "%s", c.Message)
		}
	}
	return s.events
}

func (s *story) add(kind, reason, format string, args ...any) {
	message := text.Clip(fmt.Sprintf(format, args...), statuspace.MessageLimit)
	s.events = append(s.events, statuspace.Event{Type: kind, Reason: reason, Message: message})
}

// tellObstacles says what the job waits for, unless that is the ordinary way of a job.
func (s *story) tellObstacles() {
	if jobstate.Finished(s.after) {
		return
	}
	if c := conditions.BecameTrue(s.before.Conditions, s.after.Conditions, v1alpha1.ConditionStalled); c != nil {
		s.add(corev1.EventTypeWarning, c.Reason, "%s", c.Message)
	}
	if c := conditions.BecameTrue(s.before.Conditions, s.after.Conditions, v1alpha1.ConditionReconciling); c != nil {
		switch c.Reason {
		case v1alpha1.ReasonSubmitted, v1alpha1.ReasonQueued, v1alpha1.ReasonStarting, v1alpha1.ReasonRecovering,
			v1alpha1.ReasonCompleting, v1alpha1.ReasonSuspending, v1alpha1.ReasonPreempting, v1alpha1.ReasonRestarting:
		case v1alpha1.ReasonUnschedulable, v1alpha1.ReasonAwaitingApproval:
			s.add(corev1.EventTypeNormal, c.Reason, "%s", c.Message)
		default:
			s.add(corev1.EventTypeWarning, c.Reason, "%s", c.Message)
		}
	}
	if c := conditions.BecameTrue(s.before.Conditions, s.after.Conditions, v1alpha1.ConditionRangePending); c != nil {
		s.add(corev1.EventTypeNormal, v1alpha1.ConditionRangePending, "%s", c.Message)
	}
}

// tellWorkers says how workers came and went.
func (s *story) tellWorkers() {
	before, after := s.before, s.after
	if before.RunningSince == nil && after.RunningSince != nil {
		waited, since := time.Duration(*after.WaitSeconds)*time.Second, "submission"
		if n := after.Attempt.Number; before.StartTime != nil {
			waited, since = after.RunningSince.Sub(after.Attempt.StartTime.Time), fmt.Sprintf("the beginning of attempt %d", n)
		}
		s.add(corev1.EventTypeNormal, v1alpha1.EventScheduled, "The core of %s runs in queue %s, %s after %s.",
			Workers(after.Attempt.MinReplicas), after.Queue, waited, since)
	}
	s.tellAttempts()
	if after.RoomFrom != "" && after.RoomFrom != before.RoomFrom {
		s.add(corev1.EventTypeNormal, v1alpha1.EventRoomMade, "Workers leave for this job: %s.", after.RoomFrom)
	}
	if gone := s.evicted(); len(gone) > 0 {
		why := whyEvicted(after.Elasticity)
		s.add(corev1.EventTypeNormal, v1alpha1.EventGaveWay, "%s: %s; %d ready go on.",
			Capital(why), WorkersNamed(gone), after.ReadyReplicas)
	}
	s.tellInVain()
	s.tellRejections()
	if f := after.LastFailure; f != nil && after.Restarts > before.Restarts {
		s.add(corev1.EventTypeWarning, v1alpha1.EventWorkerLost, "%s worker %d%s, which counts as restart %d; %s.",
			map[bool]string{false: "Lost", true: "Containers restarted in"}[f.InPlace], f.Worker,
			podstate.Failure{ExitCode: f.ExitCode, Reason: f.Reason, Message: f.Message}, after.Restarts, s.whatFollows())
	}
	if given := s.givenUp(); len(given) > 0 {
		s.add(corev1.EventTypeNormal, v1alpha1.EventResized, "Gave up %s, because maxReplicas was lowered; %d ready go on.",
			WorkersNamed(given), after.ReadyReplicas)
	}
	if s.before.RunningSince != nil && !jobstate.Finished(after) && len(s.joined()) > 0 {
		s.add(corev1.EventTypeNormal, v1alpha1.EventGrew, "Grew to %s: %s joined.",
			Workers(after.ReadyReplicas), WorkersNamed(s.joined()))
	}
}

// tellInVain says that workers left for a gang that did not take their room.
func (s *story) tellInVain() {
	left := s.after.LeftInVain
	if left == nil || s.before.LeftInVain != nil && s.before.LeftInVain.Time.Equal(&left.Time) {
		return
	}
	who := Workers(left.Workers) + " left"
	if left.Whole {
		who = "The job stopped"
	}
	s.add(corev1.EventTypeWarning, v1alpha1.EventLeftInVain, "%s for %s, which was not placed in time: it takes its room back.",
		who, left.For)
}

// tellRejections says which nodes rejected workers.
func (s *story) tellRejections() {
	for i := range s.after.AvoidedNodes {
		n := &s.after.AvoidedNodes[i]
		if n.Until == nil || slices.ContainsFunc(s.before.AvoidedNodes, func(b v1alpha1.AvoidedNode) bool {
			return b.Name == n.Name && b.Rejections == n.Rejections
		}) {
			continue
		}
		s.add(corev1.EventTypeWarning, v1alpha1.EventNodeRejected, "%s That costs the job no restart. The worker is created anew, and "+
			"the job avoids the node until %s.", rejectedWords(n), Clock(n.Until.Time))
	}
}

// tellAttempts says when the job stops, goes on, and starts anew.
func (s *story) tellAttempts() {
	switch {
	case s.after.Preemption != nil && s.before.Preemption == nil:
		s.add(corev1.EventTypeNormal, v1alpha1.EventPreempted, "The job stops for %s of tier %s.",
			s.after.Preemption.By, s.after.Preemption.Tier)
	case jobstate.Stopped(s.after) && !jobstate.Stopped(s.before) && s.after.Preemption == nil:
		s.add(corev1.EventTypeNormal, v1alpha1.EventSuspended, "%s", s.after.Message)
	case jobstate.Stopped(s.before) && !jobstate.Stopped(s.after) && s.after.Attempt != nil:
		s.add(corev1.EventTypeNormal, v1alpha1.EventResumed, "The job may run: attempt %d begins.", s.after.Attempt.Number)
	case s.newAttempt() && s.before.RunningSince != nil:
		why := ""
		if s.after.Reason == v1alpha1.ReasonRestarting {
			why = s.after.Message + " "
		}
		s.add(corev1.EventTypeNormal, v1alpha1.EventRestarted, "%sAttempt %d begins, with %d..%d workers.",
			why, s.after.Attempt.Number, s.after.Attempt.MinReplicas, s.after.Attempt.MaxReplicas)
	}
}

func (s *story) newAttempt() bool {
	return s.before.Attempt != nil && s.after.Attempt != nil && s.before.Attempt.Number != s.after.Attempt.Number
}

// whatFollows says what becomes of a worker that was lost.
func (s *story) whatFollows() string {
	switch {
	case jobstate.Finished(s.after):
		return "the job has ended"
	case s.newAttempt():
		return "all workers are created anew"
	}
	if s.after.LastFailure.InPlace {
		return "it keeps its pod"
	}
	return "see the failure policy for what follows; by default it is created anew"
}

func (s *story) evicted() []int32 {
	if s.after.Elasticity == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.after.Elasticity.Evicted), func(i int32) bool {
		return s.before.Elasticity != nil && slices.Contains(s.before.Elasticity.Evicted, i)
	})
}

// givenUp lists workers that were members, were not lost, and are members no more.
func (s *story) givenUp() []int32 {
	if jobstate.Finished(s.after) || s.newAttempt() || jobstate.Stopped(s.after) {
		return nil
	}
	return living(s.before.Members, func(m v1alpha1.Member) bool { return !has(s.after.Members, m.Index) })
}

// joined lists workers that are new, or come back after they gave way. One that was lost and created anew was a member all
// the time.
func (s *story) joined() []int32 {
	return living(s.after.Members, func(m v1alpha1.Member) bool {
		return !has(s.before.Members, m.Index) || (s.before.Elasticity != nil && slices.Contains(s.before.Elasticity.Evicted, m.Index))
	})
}

// living lists the indices of members that are not lost.
func living(members []v1alpha1.Member, which func(v1alpha1.Member) bool) []int32 {
	var indices []int32
	for _, m := range members {
		if !m.Lost && which(m) {
			indices = append(indices, m.Index)
		}
	}
	return indices
}

func has(members []v1alpha1.Member, index int32) bool {
	_, found := slices.BinarySearchFunc(members, index, jobstate.CompareIndex)
	return found
}

package describe

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// story collects the events of one transition.
type story struct {
	spec          *v1beta1.ElasticTrainingJobSpec
	before, after *v1beta1.ElasticTrainingJobStatus
	events        []statuspace.Event
}

// EventsBetween says what changed from one written status to the next. Call it once per write, after the write succeeded, so
// that no event is repeated after a restart of the operator. The spec is the one that the later status speaks of.
func EventsBetween(spec *v1beta1.ElasticTrainingJobSpec, before, after *v1beta1.ElasticTrainingJobStatus) []statuspace.Event {
	s := &story{spec: spec, before: before, after: after}
	s.tellObstacles()
	if said := sizing.DescribeChange(before.Sizing, after.Sizing); said != "" {
		s.addEvent(corev1.EventTypeNormal, v1beta1.EventSized, "%s", said)
	}
	s.tellWorkers()
	for kind, condition := range map[string]string{
		corev1.EventTypeNormal: v1beta1.ConditionSucceeded, corev1.EventTypeWarning: v1beta1.ConditionFailed,
	} {
		if c := conditions.BecameTrue(s.before.Conditions, s.after.Conditions, condition); c != nil {
			s.addEvent(kind, condition, "%s", c.Message)
		}
	}
	return s.events
}

func (s *story) addEvent(kind, reason, format string, args ...any) {
	message := text.ClipLine(fmt.Sprintf(format, args...), statuspace.MessageLimit)
	s.events = append(s.events, statuspace.Event{Type: kind, Reason: reason, Message: message})
}

// tellObstacles says what holds the job up.
func (s *story) tellObstacles() {
	if jobstate.IsFinished(s.after) {
		return // The event of the end says why.
	}
	if c := conditions.BecameTrue(s.before.Conditions, s.after.Conditions, v1beta1.ConditionStalled); c != nil {
		s.addEvent(corev1.EventTypeWarning, c.Reason, "%s", c.Message)
	}
	if c := conditions.BecameTrue(s.before.Conditions, s.after.Conditions, v1beta1.ConditionReconciling); c != nil {
		switch c.Reason {
		case v1beta1.ReasonSubmitted, v1beta1.ReasonQueued, v1beta1.ReasonStarting, v1beta1.ReasonRecovering,
			v1beta1.ReasonCompleting, v1beta1.ReasonSuspending, v1beta1.ReasonPreempting, v1beta1.ReasonRestarting:
			// Every job passes through these; an event for each would hide the others.
		case v1beta1.ReasonUnschedulable, v1beta1.ReasonAwaitingApproval:
			s.addEvent(corev1.EventTypeNormal, c.Reason, "%s", c.Message)
		default:
			s.addEvent(corev1.EventTypeWarning, c.Reason, "%s", c.Message)
		}
	}
	if c := conditions.BecameTrue(s.before.Conditions, s.after.Conditions, v1beta1.ConditionRangePending); c != nil {
		s.addEvent(corev1.EventTypeNormal, v1beta1.ConditionRangePending, "%s", c.Message)
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
		s.addEvent(corev1.EventTypeNormal, v1beta1.EventScheduled, "The core of %s runs in queue %s, %s after %s.",
			CountWorkers(after.Attempt.MinReplicas), after.Queue, waited, since)
	}
	s.tellAttempts()
	if len(after.RoomFrom) > 0 && !slices.Equal(after.RoomFrom, before.RoomFrom) {
		s.addEvent(corev1.EventTypeNormal, v1beta1.EventRoomMade, "Workers of other jobs leave to make room for this job: %s.",
			listSources(after.RoomFrom))
	}
	if gone := s.newlyEvicted(); len(gone) > 0 {
		s.addEvent(corev1.EventTypeNormal, v1beta1.EventGaveWay, "%s %s; %s ready.",
			CapitalizeFirst(WorkersNamed(gone)), whyEvicted(after.Elasticity), CountWorkers(after.ReadyReplicas))
	}
	s.tellInVain()
	s.tellRejections()
	s.tellStraggler()
	if f := after.LastFailure; f != nil && after.Restarts > before.Restarts {
		s.addEvent(corev1.EventTypeWarning, v1beta1.EventWorkerLost, "%s; %s%s.", whatFailed(f), s.whatFollows(), s.restartsUsed())
	}
	if given := s.givenUp(); len(given) > 0 {
		s.addEvent(corev1.EventTypeNormal, v1beta1.EventResized, "Removed %s because %s; %s ready.",
			WorkersNamed(given), s.whyGivenUp(given), CountWorkers(after.ReadyReplicas))
	}
	if s.before.RunningSince != nil && !jobstate.IsFinished(after) && len(s.joinedWorkers()) > 0 {
		s.addEvent(corev1.EventTypeNormal, v1beta1.EventGrew, "Grew to %s: %s joined.",
			CountWorkers(after.ReadyReplicas), WorkersNamed(s.joinedWorkers()))
	}
}

// tellInVain says that workers left for a gang that was not placed.
func (s *story) tellInVain() {
	left := s.after.LeftInVain
	if left == nil || s.before.LeftInVain != nil && s.before.LeftInVain.Time.Equal(&left.Time) {
		return
	}
	who := CountWorkers(left.Workers) + " left"
	if left.Whole {
		who = "The job stopped"
	}
	s.addEvent(corev1.EventTypeWarning, v1beta1.EventLeftInVain,
		"%s to make room for %s, but Volcano did not place it in time: the job takes its room back.", who, left.For)
}

// tellStraggler says which worker all others wait for.
func (s *story) tellStraggler() {
	if s.after.Training == nil || s.after.Training.Straggler == nil {
		return
	}
	slow := s.after.Training.Straggler
	if was := s.before.Training; was != nil && was.Straggler != nil && was.Straggler.Worker == slow.Worker {
		return
	}
	where := ""
	if slow.Node != "" {
		where = " on node " + slow.Node
	}
	s.addEvent(corev1.EventTypeWarning, v1beta1.EventSlowWorker, "Worker %d%s takes %s times as long as the median worker for its "+
		"part of a step, by its own clock, and all others wait for it. Compare its node's devices with others, or the part of the "+
		"data that it reads.", slow.Worker, where, slow.Slowness)
}

// tellRejections says which nodes rejected workers, or failed them.
func (s *story) tellRejections() {
	for i := range s.after.AvoidedNodes {
		n := &s.after.AvoidedNodes[i]
		if n.Until == nil || slices.ContainsFunc(s.before.AvoidedNodes, func(b v1beta1.AvoidedNode) bool {
			return b.Name == n.Name && b.Rejections == n.Rejections
		}) {
			continue
		}
		if n.Failed {
			s.addEvent(corev1.EventTypeWarning, v1beta1.EventNodeAvoided, "%s", failedWords(n))
			continue
		}
		s.addEvent(corev1.EventTypeWarning, v1beta1.EventNodeRejected, "%s This does not count as a restart. The worker is created "+
			"again, and the job avoids the node until %s.", rejectedWords(n), FormatTime(n.Until.Time))
	}
}

// tellAttempts says that the job stops, resumes, or restarts all its workers.
func (s *story) tellAttempts() {
	switch {
	case s.after.Preemption != nil && s.before.Preemption == nil:
		s.addEvent(corev1.EventTypeNormal, v1beta1.EventPreempted, "The job stops to make room for %s of tier %s.",
			s.after.Preemption.By, s.after.Preemption.Tier)
	case jobstate.IsStopped(s.after) && !jobstate.IsStopped(s.before) && s.after.Preemption == nil:
		s.addEvent(corev1.EventTypeNormal, v1beta1.EventSuspended, "%s", s.after.Message)
	case jobstate.IsStopped(s.before) && !jobstate.IsStopped(s.after) && s.after.Attempt != nil:
		s.addEvent(corev1.EventTypeNormal, v1beta1.EventResumed, "The job resumes: attempt %d begins.", s.after.Attempt.Number)
	case s.newAttempt() && s.before.RunningSince != nil:
		why := ""
		if s.after.Reason == v1beta1.ReasonRestarting {
			why = s.after.Message + " "
		}
		s.addEvent(corev1.EventTypeNormal, v1beta1.EventRestarted, "%sAttempt %d begins, with %d..%d workers.",
			why, s.after.Attempt.Number, s.after.Attempt.MinReplicas, s.after.Attempt.MaxReplicas)
	}
}

func (s *story) newAttempt() bool {
	return s.before.Attempt != nil && s.after.Attempt != nil && s.before.Attempt.Number != s.after.Attempt.Number
}

// whatFailed says what happened to a worker: "Worker 1's pod was deleted", "Worker 3 failed with exit code 1 (Error): last line".
func whatFailed(f *v1beta1.WorkerFailure) string {
	failure := podstate.Failure{ExitCode: f.ExitCode, Reason: f.Reason, Message: f.Message}
	switch {
	case f.Reason == v1beta1.ReasonNoSteps:
		return "The training took no steps"
	case f.InPlace:
		return fmt.Sprintf("A container of worker %d failed%s", f.Worker, failure)
	case f.Reason == losses.Deleted && f.ExitCode == 0:
		return fmt.Sprintf("Worker %d's pod was deleted", f.Worker)
	}
	return fmt.Sprintf("Worker %d failed%s", f.Worker, failure)
}

// restartsUsed says how many restarts count, and how many end the job; empty if none counts any more.
func (s *story) restartsUsed() string {
	counted := len(s.after.RestartTimes)
	if counted == 0 {
		return ""
	}
	return fmt.Sprintf(" (restart %d of at most %d)", counted, ptr.Deref(s.spec.Restarts.Max, v1beta1.DefaultMaxRestarts))
}

// whatFollows says what becomes of a worker that was lost.
func (s *story) whatFollows() string {
	switch {
	case jobstate.IsFinished(s.after):
		return "the job has ended"
	case s.newAttempt():
		return "all workers are created again"
	case jobstate.IsStopped(s.after):
		return "the job is stopping"
	}
	f := s.after.LastFailure
	if f.InPlace {
		return "it restarts in its pod"
	}
	at, known := slices.BinarySearchFunc(s.after.Members, f.Worker, jobstate.CompareIndex)
	if known && s.after.Members[at].HasLeft() {
		return "it is not replaced, because a rule of the failure policy says Ignore"
	}
	return "it is being created again"
}

// newlyEvicted lists surplus workers that gave way with this change.
func (s *story) newlyEvicted() []int32 {
	if s.after.Elasticity == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.after.Elasticity.Evicted), func(i int32) bool {
		return s.before.Elasticity.HasEvicted(i)
	})
}

// givenUp lists workers that were living members and are no members any more, because replicas or maxReplicas was lowered.
func (s *story) givenUp() []int32 {
	if jobstate.IsFinished(s.after) || s.newAttempt() || jobstate.IsStopped(s.after) {
		return nil
	}
	return livingIndices(s.before.Members, func(m v1beta1.Member) bool { return !hasMember(s.after.Members, m.Index) })
}

// whyGivenUp says which field took workers away: the lower of target and maximum, or the step if they were within both. Where
// target and maximum are the same, either may be it.
func (s *story) whyGivenUp(given []int32) string {
	field, limit := "replicas or maxReplicas", s.spec.MaxReplicas
	switch target := max(s.spec.Replicas, s.spec.MinReplicas); {
	case s.after.Targeted && target < limit:
		field, limit = "replicas", target
	case !s.after.Targeted || target > limit:
		field = "maxReplicas"
	}
	if slices.Max(given) < limit {
		return fmt.Sprintf("elasticity.step is %d, and they make no whole step", s.spec.Elasticity.Step)
	}
	if field == "replicas" {
		limit = s.spec.Replicas // As it was written, also below minReplicas.
	}
	return fmt.Sprintf("%s was lowered to %d", field, limit)
}

// joinedWorkers lists workers that are new, or return after they gave way. A lost worker that was created again is neither: it
// stayed in the list of members.
func (s *story) joinedWorkers() []int32 {
	return livingIndices(s.after.Members, func(m v1beta1.Member) bool {
		return !hasMember(s.before.Members, m.Index) || s.before.Elasticity.HasEvicted(m.Index)
	})
}

// livingIndices lists the indices of the chosen members that are not lost.
func livingIndices(members []v1beta1.Member, which func(v1beta1.Member) bool) []int32 {
	var indices []int32
	for _, m := range members {
		if !m.IsLost() && which(m) {
			indices = append(indices, m.Index)
		}
	}
	return indices
}

func hasMember(members []v1beta1.Member, index int32) bool {
	_, found := slices.BinarySearchFunc(members, index, jobstate.CompareIndex)
	return found
}

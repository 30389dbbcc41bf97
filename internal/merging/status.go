package merging

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// writeWords writes phase, summary, message and conditions.
func (t *description) writeWords(line []*merge) {
	t.st.Position, t.st.BlockedBy = positionPointer(t.position), nil
	if t.position == 0 && t.st.Run == nil {
		t.st.QueueTime = nil
	}
	switch run := t.st.Run; {
	case t.isWithdrawn() && t.job.Verdict.Never != nil:
		t.obstacle = neverFits(t.state)
		t.sayObstacle()
	case run != nil && run.Outcome != "" && run.Outcome != v1beta1.OutcomeWithdrawn:
		t.sayStopping()
	case run != nil && run.RunTime != nil && run.Outcome == "":
		t.sayRunning()
	case run != nil && run.PlaceTime != nil && run.Outcome == "":
		t.sayStarting()
	case run != nil || t.position > 0:
		t.sayQueued(line)
	default:
		t.sayObstacle()
	}
	t.setConditions()
}

func (t *description) sayObstacle() {
	o := t.obstacle
	t.st.Phase = o.phase
	summary := o.short
	if o.phase == "" {
		t.st.Phase, summary = v1beta1.MergeWaiting, fmt.Sprintf("%s (%s)", v1beta1.MergeWaiting, o.short)
	}
	t.held = o
	t.setMessage(summary, o.reason, o.message)
}

// sayQueued gives the position in the line, and what its head lacks.
func (t *description) sayQueued(line []*merge) {
	t.st.Phase = v1beta1.MergeQueued
	head, lacks := t.merge, ""
	if len(line) > 0 {
		head = line[0]
	}
	if !head.isAsking() {
		head = nil
	} else {
		lacks = head.whyUnplaced()
	}
	switch {
	case t.goesAhead():
		t.sayProgress("Queued (going ahead)", v1beta1.ReasonGoingAhead, fmt.Sprintf("%s of %s wait to be placed together.%s %s",
			count(t.st.Run.MinReplicas, "pod"), t.podRequests(), t.aheadNote(), t.whyUnplaced()))
	case t.isAsking():
		t.st.BlockedBy = &v1beta1.MergeBlock{Shortfall: clip(head.shortfall(), messageLimit)}
		t.sayProgress("Queued (asking)", v1beta1.ReasonAsking, fmt.Sprintf("First of %d in the line of pool %s. %s of %s wait "+
			"to be placed together. %s", len(line), t.st.Pool, count(t.st.Run.MinReplicas, "pod"), t.podRequests(), lacks)+
			t.describeAhead()+t.describeOverdue(t.p.o.Leaving, "gang")+t.describeOverdue(t.job.Strangers, "pod"))
	case t.position == 0:
		t.sayProgress("Queued (taken back)", v1beta1.ReasonStopping, t.st.Run.Message+t.lingeringPod())
	default:
		t.sayInLine(head, len(line))
	}
}

func (t *description) sayInLine(head *merge, length int) {
	leaving, _, until := t.p.pendingLeftovers(t.p.o.Leaving)
	message := fmt.Sprintf("Place %d of %d in the line of pool %s, with weight %d", t.position, length, t.st.Pool,
		ptr.Deref(t.st.Weight, 0))
	switch {
	case t.sayBlockedTurn(length):
		return
	case t.job.Store != nil && t.job.Store.Trouble != nil:
		message += ". It keeps its place and lets others pass until Tideline can read its store: " + t.job.Store.Trouble.Message
	case head != nil:
		key := head.job.Key()
		name := key.String()
		if key.Namespace == t.job.Object.Namespace {
			name = key.Name
		}
		t.st.BlockedBy = &v1beta1.MergeBlock{Head: ptr.To(v1beta1.RefTo(key)), Shortfall: clip(head.shortfall(), messageLimit)}
		message += fmt.Sprintf(". %s asks for its place now; one merge of a pool asks at a time.", name)
	case t.p.whyClosed() != nil:
		message += ". " + t.p.whyClosed().message
	case len(leaving) > 0:
		message += fmt.Sprintf(". The gang of a deleted MergeJob has not left the pool yet. Tideline waits for it until %s at the "+
			"latest.", until.UTC().Format(time.RFC3339))
	case t.position == 1 && t.d.ReadStore:
		message += ". Tideline reads its store once more first."
	default:
		message += "."
	}
	if t.goesLast() {
		message += " Other merges go first, because Volcano did not place this one when it last asked. " + t.st.SetAside.Message
	}
	message += t.hollowNote() + t.slowScheduleNote()
	t.sayProgress(fmt.Sprintf("Queued (%d of %d)", t.position, length), v1beta1.ReasonInLine, message)
}

// shortfall is what the gang lacks, in figures; empty if it lacks nothing by Tideline's count.
func (t *facts) shortfall() string {
	a := t.job.Verdict.Answer
	if t.job.Verdict.Waiting == 0 || a.Fits || a.Unknown != "" {
		return ""
	}
	return a.Short.String()
}

// whyUnplaced is the reason for which the gang has no place yet.
func (t *state) whyUnplaced() string {
	v := t.job.Verdict
	switch a := v.Answer; {
	case t.p.whyClosed() != nil:
		return t.p.whyClosed().message
	case t.job.Problem != nil:
		return t.job.Problem.Message
	case t.job.Core == nil || v.Waiting == 0:
		return "Volcano has not answered yet."
	case a.Unknown != "":
		return "Tideline cannot tell whether it fits, because it asks for " + a.Unknown + ". Volcano decides."
	case a.Fits:
		// The time and not the duration, which would change the message, and so write the status, with every evaluation.
		return fmt.Sprintf("By Tideline's count it has fitted since %s; Volcano decides. If it is not placed within a minute, check "+
			"that Volcano's scheduler runs (tideline doctor).", clockTime(t.fitsSince()))
	default:
		return a.SayFree()
	}
}

func (t *description) sayStarting() {
	run := t.st.Run
	t.st.Phase = v1beta1.MergeStarting
	n := t.countRunning()
	message := fmt.Sprintf("All %s are placed; %d of them run.", count(run.MinReplicas, "pod"), n)
	if run.MinReplicas == 1 {
		message = "Its only pod is placed, and does not run yet."
	}
	t.sayProgress(fmt.Sprintf("Starting (%d/%d)", n, run.MinReplicas), v1beta1.ReasonStarting,
		message+t.aheadNote()+t.describeOverdue(t.job.Strangers, "pod"))
}

func (t *description) sayRunning() {
	run := t.st.Run
	t.st.Phase = v1beta1.MergeRunning
	base := "no full model"
	if run.Base != "" {
		base = "full model " + run.Base
	}
	if run.Base == "" && t.spec.Window != nil {
		base = "nothing before them"
	}
	message := fmt.Sprintf("Merging %s with %s into %s%s/, with %s.", count(run.Increments, "increment"), base, t.spec.Store.Full,
		run.ID, count(t.countRunning(), "pod")) + t.aheadNote() + t.describeOverdue(t.job.Strangers, "pod")
	switch beyond := run.MaxReplicas - run.MinReplicas; {
	case beyond > 0 && len(t.p.o.SchedulerObstacles) > 0:
		message += fmt.Sprintf(" Tideline does not create the %s beyond minReplicas, because Volcano's configuration does "+
			"not let surplus give way (config/volcano).", count(beyond, "pod"))
	case t.job.Problem.IsFinal():
		message += " It continues without its surplus: " + t.job.Problem.Message
	}
	t.sayProgress(fmt.Sprintf("Running (%d/%d)", t.countRunning(), run.MaxReplicas), v1beta1.ReasonMerging, message)
}

func (t *facts) countRunning() int32 {
	n := int32(0)
	for i := range t.job.Pods {
		w := &t.job.Pods[i]
		if w.Phase == corev1.PodRunning && !w.Terminating && w.Attempt == t.attemptName() {
			n++
		}
	}
	return n
}

func (t *description) sayStopping() {
	run := t.st.Run
	switch run.Outcome {
	case v1beta1.OutcomeMerged:
		t.st.Phase = v1beta1.MergeMerged
	case v1beta1.OutcomeTimedOut:
		t.st.Phase = v1beta1.MergeTimedOut
	case v1beta1.OutcomeSuspended:
		t.st.Phase = v1beta1.MergeSuspended
	default:
		t.st.Phase = v1beta1.MergeFailed
	}
	t.sayProgress(string(t.st.Phase), run.Reason, run.Message+t.lingeringPod())
}

// lingeringPod names a pod that should be gone by now and delays the merge.
func (t *state) lingeringPod() string {
	end := t.st.Run.EndTime
	at := slices.IndexFunc(t.job.Pods, func(w podstate.Worker) bool { return w.Terminating && !w.HasEnded() })
	switch {
	case end == nil:
		return ""
	case at < 0 && t.startsAnew() && t.holdsNothing() && t.job.Store != nil && t.job.Store.Trouble != nil:
		return " Tideline must read the store to see whether the attempt merged after all: " + t.job.Store.Trouble.Message
	case at < 0:
		return ""
	}
	if late := end.Add(2 * StopGraceSeconds * time.Second); t.p.now.Before(late) {
		t.p.wakeAt(late)
		return ""
	}
	return fmt.Sprintf(" It waits for pod %s, which is being deleted. Check its node; delete the pod with --force if the "+
		"node is gone "+
		"for good.", mergepod.PodName(t.job.Object.Name, t.job.Pods[at].Index))
}

// sayProgress is for a merge that makes progress.
func (t *description) sayProgress(summary, reason, message string) {
	t.held = nil
	t.setMessage(summary, reason, message)
}

func (t *description) setMessage(summary, reason, message string) {
	t.st.Summary, t.st.Reason, t.st.Message, t.sentence = clip(summary, 128), reason, clip(message, conditions.MessageLimit), message
}

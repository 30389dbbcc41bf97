package merging

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// say writes the words that people read, and the conditions.
func (t *description) say(line []*merge) {
	t.st.Position, t.st.BlockedBy = position(t.position), nil
	if t.position == 0 && t.st.Run == nil {
		t.st.QueueTime = nil
	}
	switch run := t.st.Run; {
	case t.withdrawn() && t.job.Verdict.Never != nil:
		t.obstacle = neverFits(t.state)
		t.sayObstacle()
	case run != nil && run.Outcome != "" && run.Outcome != v1alpha1.OutcomeWithdrawn:
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

// sayObstacle says what keeps the merge out of the line. One that waits for its time, or has merged for good, is Ready.
func (t *description) sayObstacle() {
	o := t.obstacle
	t.st.Phase = o.phase
	summary := o.short
	if o.phase == "" {
		t.st.Phase, summary = v1alpha1.MergeWaiting, fmt.Sprintf("%s (%s)", v1alpha1.MergeWaiting, o.short)
	}
	t.held = o
	t.speak(summary, o.reason, o.message)
}

// sayQueued says where the merge stands in the line, and what the head of it lacks.
func (t *description) sayQueued(line []*merge) {
	t.st.Phase = v1alpha1.MergeQueued
	head, lacks := t.merge, ""
	if len(line) > 0 {
		head = line[0]
	}
	if !head.asking() {
		head = nil
	} else {
		lacks = head.lacks()
	}
	switch {
	case t.asking():
		t.st.BlockedBy = &v1alpha1.MergeBlock{Shortfall: clip(head.shortfall(), messageLimit)}
		t.sayProgress("Queued (asking)", v1alpha1.ReasonAsking, fmt.Sprintf("First of %d in the line of pool %s: %s of %s wait for "+
			"their place, all together. %s", len(line), t.st.Pool, count(t.st.Run.MinReplicas, "pod"), t.asks(), lacks)+
			t.outstayed(t.p.o.Leaving, "gang")+t.outstayed(t.job.Strangers, "pod"))
	case t.position == 0:
		t.sayProgress("Queued (taken back)", v1alpha1.ReasonStopping, t.st.Run.Message+t.lingering())
	default:
		t.sayInLine(head, len(line))
	}
}

func (t *description) sayInLine(head *merge, length int) {
	leaving, _, until := t.p.held(t.p.o.Leaving)
	message := fmt.Sprintf("Place %d of %d in the line of pool %s, with weight %d", t.position, length, t.st.Pool,
		ptr.Deref(t.st.Weight, 0))
	switch {
	case t.job.Store != nil && t.job.Store.Trouble != nil:
		message += ". It keeps its place and lets others pass until its store can be read: " + t.job.Store.Trouble.Message
	case head != nil:
		key := head.job.Key()
		name := key.String()
		if key.Namespace == t.job.Object.Namespace {
			name = key.Name
		}
		t.st.BlockedBy = &v1alpha1.MergeBlock{Head: name, Shortfall: clip(head.shortfall(), messageLimit)}
		message += fmt.Sprintf(": %s asks for its place, and one asks at a time.", name)
	case t.p.shut() != nil:
		message += ". " + t.p.shut().message
	case len(leaving) > 0:
		message += fmt.Sprintf(": the gang of a MergeJob that was deleted has not left the pool yet. It is waited for until %s at "+
			"the latest.", until.UTC().Format(time.RFC3339))
	case t.position == 1 && t.d.ReadStore:
		message += ": its store is read once more first."
	default:
		message += "."
	}
	if t.behind() {
		message += " It goes behind those that can go, because it was not placed when it last asked. " + t.st.SetAside.Message
	}
	message += t.hollow() + t.slow()
	t.sayProgress(fmt.Sprintf("Queued (%d of %d)", t.position, length), v1alpha1.ReasonInLine, message)
}

// shortfall is what the gang lacks, in figures.
func (t *state) shortfall() string {
	a := t.job.Verdict.Answer
	if t.job.Verdict.Waiting == 0 || a.Fits || a.Unknown != "" {
		return ""
	}
	return a.Short.String()
}

// lacks says why the gang has no place yet.
func (t *state) lacks() string {
	v := t.job.Verdict
	switch a := v.Answer; {
	case t.p.shut() != nil:
		return t.p.shut().message
	case t.job.Problem != nil:
		return t.job.Problem.Message
	case t.job.Core == nil || v.Waiting == 0:
		return "It is with Volcano."
	case a.Unknown != "":
		return "Whether it fits is for Volcano to say, because it asks for " + a.Unknown + "."
	case a.Fits:
		return "By Tideline's count it fits now; Volcano decides."
	default:
		return a.SayFree()
	}
}

func (t *description) sayStarting() {
	run := t.st.Run
	t.st.Phase = v1alpha1.MergeStarting
	n := t.running()
	t.sayProgress(fmt.Sprintf("Starting (%d/%d)", n, run.MinReplicas), v1alpha1.ReasonStarting, fmt.Sprintf(
		"All %s are placed; %d of them run.", count(run.MinReplicas, "pod"), n)+t.outstayed(t.job.Strangers, "pod"))
}

func (t *description) sayRunning() {
	run := t.st.Run
	t.st.Phase = v1alpha1.MergeRunning
	base := "no full model"
	if run.Base != "" {
		base = "full model " + run.Base
	}
	message := fmt.Sprintf("Merging %s with %s into %s%s/, with %s.", count(run.Increments, "increment"), base, t.spec.Store.Full,
		run.ID, count(t.running(), "pod")) + t.outstayed(t.job.Strangers, "pod")
	switch beyond := run.MaxReplicas - run.MinReplicas; {
	case beyond > 0 && len(t.p.o.SchedulerObstacles) > 0:
		message += fmt.Sprintf(" The %d beyond minReplicas are not created, because Volcano's configuration does not let surplus give "+
			"way (config/volcano).", beyond)
	case t.job.Problem.Final():
		message += " It goes on without what was refused: " + t.job.Problem.Message
	}
	t.sayProgress(fmt.Sprintf("Running (%d/%d)", t.running(), run.MaxReplicas), v1alpha1.ReasonMerging, message)
}

// running counts pods of the attempt that run.
func (t *state) running() int32 {
	n := int32(0)
	for i := range t.job.Pods {
		w := &t.job.Pods[i]
		if w.Phase == corev1.PodRunning && !w.Terminating && w.Attempt == t.attempt() {
			n++
		}
	}
	return n
}

func (t *description) sayStopping() {
	run := t.st.Run
	switch run.Outcome {
	case v1alpha1.OutcomeMerged:
		t.st.Phase = v1alpha1.MergeMerged
	case v1alpha1.OutcomeTimedOut:
		t.st.Phase = v1alpha1.MergeTimedOut
	case v1alpha1.OutcomeSuspended:
		t.st.Phase = v1alpha1.MergeSuspended
	default:
		t.st.Phase = v1alpha1.MergeFailed
	}
	t.sayProgress(string(t.st.Phase), run.Reason, run.Message+t.lingering())
}

// lingering names a pod that should have left by now, and keeps the merge from going on.
func (t *state) lingering() string {
	end := t.st.Run.EndTime
	at := slices.IndexFunc(t.job.Pods, func(w podstate.Worker) bool { return w.Terminating && !w.Ended() })
	switch {
	case end == nil:
		return ""
	case at < 0 && t.dropped() && t.cleared() && t.job.Store != nil && t.job.Store.Trouble != nil:
		return " Whether it merged all the same shows when its store can be read: " + t.job.Store.Trouble.Message
	case at < 0:
		return ""
	}
	if late := end.Add(2 * StopGraceSeconds * time.Second); t.p.now.Before(late) {
		t.p.wake(late)
		return ""
	}
	return fmt.Sprintf(" It waits for pod %s to leave, which was told to: see whether its node is well, and delete it with --force "+
		"if the node is gone for good.", mergepod.PodName(t.job.Object.Name, t.job.Pods[at].Index))
}

// sayProgress is for a merge that is on its way.
func (t *description) sayProgress(summary, reason, message string) {
	t.held = nil
	t.speak(summary, reason, message)
}

func (t *description) speak(summary, reason, message string) {
	t.st.Summary, t.st.Reason, t.st.Message, t.sentence = clip(summary, 128), reason, clip(message, conditions.MessageLimit), message
}

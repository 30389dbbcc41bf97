package merging

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// The line of a pool, from the head to the end:
//
//	rank 0   the head, whose gang asks Volcano for its place: at most one in a pool
//	rank 1   the merge that goes ahead of a head without room: at most one in a pool (ahead.go)
//	rank 2   runs whose attempt was taken back, and that ask again
//	rank 3   merges that are due
//	rank 4   merges that were not placed when they asked, for 24 hours after that
//
// Within a rank the larger weight goes first (weigh.go). The age in it grows without bound and the rest does not. Therefore every
// merge that is due reaches the head in the end, however many increments or however much boost the others have.

// buildLine lists the merges that wait for their turn, in order, and notes each one's position.
func (p *planner) buildLine() []*merge {
	var line []*merge
	for _, t := range p.merges {
		if t.isAsking() || t.mayAskAgain() || (t.st.Run == nil && t.due && t.obstacle == nil) {
			line = append(line, t)
		}
	}
	slices.SortFunc(line, func(a, b *merge) int { return a.compareInLine(b.state) })
	for i, t := range line {
		t.position = int32(i + 1)
		if t.st.QueueTime == nil {
			t.st.QueueTime = timePointer(p.now)
		}
	}
	return line
}

// compareInLine orders the line.
func (t *state) compareInLine(o *state) int {
	rank := func(t *state) int {
		switch {
		case t.goesAhead():
			return 1
		case t.isAsking():
			return 0
		case t.goesLast():
			return 4 //nolint:mnd // the last of five
		case t.mayAskAgain():
			return 2 //nolint:mnd // the third of five
		}
		return 3 //nolint:mnd // the fourth of five
	}
	return cmp.Or(
		cmp.Compare(rank(t), rank(o)), cmp.Compare(o.order, t.order), t.dueSince().Compare(o.dueSince()),
		cmp.Compare(t.job.Object.Namespace, o.job.Object.Namespace), cmp.Compare(t.job.Object.Name, o.job.Object.Name))
}

// dueSince is when the merge became due. A merge without a due time was due from the beginning, so its creation counts.
func (t *facts) dueSince() time.Time {
	if t.st.DueTime != nil {
		return t.st.DueTime.Time
	}
	return t.job.Object.CreationTimestamp.Time
}

// callHead lets the head of the line ask for its place, unless a gang of the pool still waits for one or has yet to be deleted. A
// merge whose store cannot be read, or whose user is at a cap, lets the next one pass. A merge whose store this process has not
// read yet keeps its place: otherwise it would lose it at each start of the operator.
func (p *planner) callHead(line []*merge) {
	if p.o.VolcanoMissing != "" || p.o.QueueMissing || !p.isQueueOpen() {
		return
	}
	if held, until := p.roomHeld(); held {
		could := func(t *merge) bool { return t.job.Store == nil || t.job.Store.Trouble == nil }
		// Nothing needs to be decided again at that time if none of the line can use it.
		if !until.IsZero() && slices.ContainsFunc(line, could) {
			p.wakeAt(until)
		}
		p.callAhead(line)
		p.endIdleAsks(line)
		return
	}
	for _, t := range line {
		switch {
		case t.hasStoreTrouble():
			continue
		case t.needsSighting():
			t.d.ReadStore = true
			return
		}
		switch t.seekTurn() {
		case turnTaken:
			t.askForPlace()
			return
		case turnUnknown:
			// It keeps its place until the answer comes, which turnPatience bounds.
			return
		case turnBlocked:
		}
	}
}

func (t *facts) hasStoreTrouble() bool { return t.job.Store != nil && t.job.Store.Trouble != nil }

// needsSighting tells whether the store must be read before a run begins. The run records which increments it merges, so it
// begins only with a reading that fits spec and record.
func (t *facts) needsSighting() bool {
	return t.job.Store == nil || t.fresh == nil || t.hasStaleSighting()
}

// hasStaleSighting tells whether the store was read before the spec last changed, or before a user asked for a run.
func (t *facts) hasStaleSighting() bool {
	s, object := t.job.Store, t.job.Object
	called := t.calledByHand() && s.RunNow != object.Annotations[v1beta1.AnnotationRunNow]
	return called || s.Generation != object.Generation
}

// templateHash is the hash of what the pods of an attempt are made from.
func (t *facts) templateHash() string {
	content, err := json.Marshal([]any{t.spec.Template, t.spec.MinReplicas, t.spec.MaxReplicas, t.spec.Tier})
	if err != nil {
		return "" // A template that came from JSON goes back to it.
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// isQueueOpen tells whether the pool's Queue takes gangs. A Queue without a state is new: Volcano opens it.
func (p *planner) isQueueOpen() bool { return p.o.QueueState == "" || p.o.QueueState == gang.QueueOpen }

// askForPlace begins a run, or the next attempt of one. The next evaluation creates its objects, once the status is written.
func (t *merge) askForPlace() {
	now := metaTime(t.p.now)
	if run := t.st.Run; run != nil {
		t.st.Sizing = t.sizeAttempt()
		run.Attempt++
		if changed := run.PlaceTime == nil && run.Reason == v1beta1.ReasonAsking; !changed {
			run.Short, run.FitTime = false, nil
		} else if run.FitTime == nil && !run.Short {
			// A user who edits the template of an attempt that is not placed gets no new placement timeout. Otherwise edits could keep
			// the head of the line for ever.
			run.FitTime = &run.AskTime
			run.FitTime = run.FitTime.DeepCopy()
		}
		run.AskTime, run.PlaceTime, run.RunTime, run.EndTime = now, nil, nil, nil
		run.Outcome, run.Reason, run.Message, run.ExpectedEndTime, run.Ahead = "", "", "", nil, nil
		run.MinReplicas, run.MaxReplicas, run.Template = t.spec.MinReplicas, t.mostPods(), t.templateHash()
		run.Tier, t.st.TurnTime = t.st.Tier, nil
		return
	}
	id := RunID(t.p.now, t.job.Object.UID)
	if slices.ContainsFunc(t.st.History, func(r v1beta1.MergeResult) bool { return r.Run == id }) {
		// Ids count in seconds. Two runs with one id would write into the same directory.
		t.p.wakeAt(t.p.now.Add(time.Second))
		return
	}
	t.st.Sizing = t.sizeAttempt()
	t.st.Run = &v1beta1.MergeRun{
		ID: id, Attempt: 1, AskTime: now, Base: t.baseOfRun(),
		Increments: int32(t.fresh.Increments.Listed), LastIncrement: t.lastListed(),
		MinReplicas: t.spec.MinReplicas, MaxReplicas: t.mostPods(), Template: t.templateHash(), Tier: t.st.Tier,
	}
	if t.calledByHand() {
		t.st.Run.ByHand = true
		t.st.RunNow = clip(t.job.Object.Annotations[v1beta1.AnnotationRunNow], runNowLimit)
	}
	t.st.RetryTime, t.st.TurnTime = nil, nil
}

// baseOfRun is the full model that a run begins from; empty for none, and for a run over a window.
func (t *facts) baseOfRun() string {
	if t.spec.Window != nil {
		return ""
	}
	return nameOf(t.st.LastFull)
}

// lastListed is the last increment of a run that takes all that are listed. When none are, as in a run by hand, it is the
// last one that the base contains.
func (t *facts) lastListed() string {
	if t.fresh.Increments.Listed == 0 && t.st.LastFull != nil {
		return t.st.LastFull.LastIncrement
	}
	return t.fresh.Increments.Last
}

// isAsking tells whether the run's gang waits for Volcano to place it.
func (t *facts) isAsking() bool {
	run := t.st.Run
	return run != nil && run.Outcome == "" && run.PlaceTime == nil
}

// mayAskAgain tells whether the run's last attempt was taken back, its objects are gone, and the run may ask again.
func (t *facts) mayAskAgain() bool {
	return t.isWithdrawn() && t.holdsNothing() && t.job.Verdict.Never == nil && !t.startsAnew()
}

// isWithdrawn tells whether the run's last attempt was taken back.
func (t *facts) isWithdrawn() bool {
	return t.st.Run != nil && t.st.Run.Outcome == v1beta1.OutcomeWithdrawn
}

// roomHeld tells whether a gang of the pool waits, or may wait, for a place, and when time alone ends that; zero for never.
func (p *planner) roomHeld() (held bool, until time.Time) {
	for _, t := range p.merges {
		if waits, last := t.awaitsPlace(); waits && last.IsZero() {
			return true, last
		} else if waits && last.After(until) {
			held, until = true, last
		}
	}
	leaving, _, last := p.pendingLeftovers(p.o.Leaving)
	if last.After(until) {
		until = last
	}
	return held || len(leaving) > 0, until
}

// awaitsPlace tells whether the job has, or may have, a gang that waits for a place. A gang that was placed or ended in this
// evaluation counts until the status records it. A gang that is being deleted wants no place, but keeps others from asking until
// the time that is returned.
func (t *state) awaitsPlace() (waits bool, until time.Time) {
	if written := t.job.Object.Status.Run; written != nil && written.Outcome == "" && written.PlaceTime == nil {
		return true, until
	}
	run := t.st.Run
	if run == nil || run.PlaceTime != nil {
		return false, until
	}
	if run.Outcome == "" || run.EndTime == nil || t.holdsNothing() {
		return run.Outcome == "", until
	}
	// A pod without a deletion timestamp may still be placed by Volcano, however late it is.
	for i := range t.job.Pods {
		if w := &t.job.Pods[i]; !w.HasEnded() && !w.Terminating {
			return true, until
		}
	}
	until = run.EndTime.Add(StopGraceSeconds*time.Second + leavingSlack)
	return t.p.now.Before(until), until
}

// positionPointer is a position in the line; nil for a merge that is not in it.
func positionPointer(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return ptr.To(n)
}

package merging

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// line lists the merges that wait for their turn: first the one that asks, then runs whose attempt was taken back, then all that
// are due, the heaviest first, and last those that were not placed when they asked.
func (p *planner) line() []*merge {
	var line []*merge
	for _, t := range p.merges {
		if t.asking() || t.returning() || (t.st.Run == nil && t.due && t.obstacle == nil) {
			line = append(line, t)
		}
	}
	slices.SortFunc(line, func(a, b *merge) int { return a.compare(b.state) })
	for i, t := range line {
		t.position = int32(i + 1)
		if t.st.QueueTime == nil {
			t.st.QueueTime = timePointer(p.now)
		}
	}
	return line
}

// compare orders the line.
func (t *state) compare(o *state) int {
	rank := func(t *state) int {
		switch {
		case t.asking():
			return 0
		case t.behind():
			return 3 //nolint:mnd // the last of four
		case t.returning():
			return 1
		}
		return 2 //nolint:mnd // the third of four
	}
	return cmp.Or(
		cmp.Compare(rank(t), rank(o)), cmp.Compare(o.order, t.order), t.dueSince().Compare(o.dueSince()),
		cmp.Compare(t.job.Object.Namespace, o.job.Object.Namespace), cmp.Compare(t.job.Object.Name, o.job.Object.Name))
}

// dueSince is when the merge became due; for one that was due from the beginning, when it was created.
func (t *state) dueSince() time.Time {
	if t.st.DueTime != nil {
		return t.st.DueTime.Time
	}
	return t.job.Object.CreationTimestamp.Time
}

// callHead lets the first of the line ask for its place, if nobody in the pool has a gang that is not placed, nor one that the
// garbage collector has yet to delete. A merge whose store cannot be read lets the next pass; one whose store this process has
// not seen yet does not, because it would lose its place whenever the operator starts.
func (p *planner) callHead(line []*merge) {
	if p.o.VolcanoMissing != "" || p.o.QueueMissing || !p.open() {
		return
	}
	if held, until := p.roomHeld(); held {
		could := func(t *merge) bool { return t.job.Store == nil || t.job.Store.Trouble == nil }
		if !until.IsZero() && slices.ContainsFunc(line, could) {
			p.wake(until)
		}
		return
	}
	for _, t := range line {
		switch {
		case t.job.Store == nil, t.fresh == nil && t.job.Store.Trouble == nil, t.job.Store.Trouble == nil && t.outdated():
			t.d.ReadStore = true
			return
		case t.job.Store.Trouble != nil:
			continue
		}
		t.ask()
		return
	}
}

// outdated tells whether the store was read before the spec said what it says now, or before somebody called for a run.
func (t *state) outdated() bool {
	s, object := t.job.Store, t.job.Object
	called := t.calledByHand() && s.RunNow != object.Annotations[v1alpha1.AnnotationRunNow]
	return called || s.Generation != object.Generation
}

// template is the hash of what the pods of an attempt are made from.
func (t *state) template() string {
	content, err := json.Marshal([]any{t.spec.Template, t.spec.MinReplicas, t.spec.MaxReplicas})
	if err != nil {
		return "" // A template that came from JSON goes back to it.
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// open tells whether the pool's Queue takes gangs. One that Volcano has not seen yet will.
func (p *planner) open() bool { return p.o.QueueState == "" || p.o.QueueState == gang.QueueOpen }

// ask begins a run, or the next attempt of one. Its objects are created when the status says so.
func (t *merge) ask() {
	now := metaTime(t.p.now)
	if run := t.st.Run; run != nil {
		t.st.Sizing = t.sized()
		run.Attempt++
		if changed := run.PlaceTime == nil && run.Reason == v1alpha1.ReasonAsking; !changed {
			run.Short, run.FitTime = false, nil
		} else if run.FitTime == nil && !run.Short {
			run.FitTime = &run.AskTime // To edit it buys no time.
			run.FitTime = run.FitTime.DeepCopy()
		}
		run.AskTime, run.PlaceTime, run.RunTime, run.EndTime = now, nil, nil, nil
		run.Outcome, run.Reason, run.Message = "", "", ""
		run.MinReplicas, run.MaxReplicas, run.Template = t.spec.MinReplicas, t.spec.MaxReplicas, t.template()
		return
	}
	id := RunID(t.p.now, t.job.Object.UID)
	if slices.ContainsFunc(t.st.History, func(r v1alpha1.MergeResult) bool { return r.Run == id }) {
		t.p.wake(t.p.now.Add(time.Second)) // Two runs never share a name.
		return
	}
	t.st.Sizing = t.sized()
	t.st.Run = &v1alpha1.MergeRun{
		ID: id, Attempt: 1, AskTime: now, Base: nameOf(t.st.LastFull),
		Increments: int32(t.fresh.Increments.Listed), LastIncrement: t.lastListed(),
		MinReplicas: t.spec.MinReplicas, MaxReplicas: t.spec.MaxReplicas, Template: t.template(),
	}
	if t.calledByHand() {
		t.st.Run.ByHand = true
		t.st.RunNow = clip(t.job.Object.Annotations[v1alpha1.AnnotationRunNow], runNowLimit)
	}
	t.st.RetryTime = nil
}

// lastListed is the last increment that a run merges which takes all that are listed: that of its base when nothing waits, as for
// a run by hand.
func (t *state) lastListed() string {
	if t.fresh.Increments.Listed == 0 && t.st.LastFull != nil {
		return t.st.LastFull.LastIncrement
	}
	return t.fresh.Increments.Last
}

// asking tells whether the run's gang asks for its place.
func (t *state) asking() bool {
	run := t.st.Run
	return run != nil && run.Outcome == "" && run.PlaceTime == nil
}

// returning tells whether the run's last attempt was taken back, nothing of it is left, and it may ask again.
func (t *state) returning() bool {
	return t.withdrawn() && t.cleared() && t.job.Verdict.Never == nil && t.st.Run.Reason != v1alpha1.ReasonNotPlaced
}

// withdrawn tells whether the run's last attempt was taken back.
func (t *state) withdrawn() bool {
	return t.st.Run != nil && t.st.Run.Outcome == v1alpha1.OutcomeWithdrawn
}

// roomHeld tells whether a gang of the pool waits for a place, or may, and when that ends by time alone; zero for never.
func (p *planner) roomHeld() (held bool, until time.Time) {
	for _, t := range p.merges {
		if waits, last := t.unplaced(); waits && last.IsZero() {
			return true, last
		} else if waits && last.After(until) {
			held, until = true, last
		}
	}
	leaving, _, last := p.held(p.o.Leaving)
	if last.After(until) {
		until = last
	}
	return held || len(leaving) > 0, until
}

// unplaced tells whether the job has, or may have, a gang that waits for a place: also one that was placed or ended this very
// moment, until that is on record. One that was told to go, and stays, wants no place: it keeps others from asking until a time.
func (t *state) unplaced() (waits bool, until time.Time) {
	if written := t.job.Object.Status.Run; written != nil && written.Outcome == "" && written.PlaceTime == nil {
		return true, until
	}
	run := t.st.Run
	if run == nil || run.PlaceTime != nil {
		return false, until
	}
	if run.Outcome == "" || run.EndTime == nil || t.cleared() {
		return run.Outcome == "", until
	}
	for i := range t.job.Pods {
		if w := &t.job.Pods[i]; !w.Ended() && !w.Terminating {
			return true, until
		}
	}
	until = run.EndTime.Add(StopGraceSeconds*time.Second + leavingSlack)
	return t.p.now.Before(until), until
}

// position is that of a merge in the line; nil for one that is not in it.
func position(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return ptr.To(n)
}

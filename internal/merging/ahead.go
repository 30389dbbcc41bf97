package merging

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// A merge goes ahead of the head of its line while the head waits for room, if it fits now and takes nothing from the head:
//
//   - it ends before the head has room, by the longest of its last runs against the usual time of the runs that hold the room;
//   - or the head has its room also while the merge runs.
//
// The arbiter says when the head has room (capacity.JudgeAhead), this file who goes. One merge goes ahead at a time, and asks for
// seconds only. So the two gangs of a pool that ask never wait for one another: the head for what others release, the other for
// Volcano to look.

const (
	// aheadTimeout is how long a merge that goes ahead asks. It fits by Tideline's count, and Volcano looks every second.
	aheadTimeout = 20 * time.Second
	// aheadPause is how long a merge does not go ahead after it was not placed. What kept it from its place may stay.
	aheadPause = 10 * time.Minute
)

// Past is how long runs of a merge held their room, from when their pods were bound; zero for unknown.
type Past struct {
	// Usual is the median of the last ones, and Longest the longest.
	Usual, Longest time.Duration
}

// pastRuns is how many of the last runs count. A model that grows soon has other durations.
const pastRuns = 10

// PastOf is what runs tell that held their room for so long, the newest last.
func PastOf(held []time.Duration) Past {
	last := slices.Clone(held[max(len(held)-pastRuns, 0):])
	if len(last) == 0 {
		return Past{}
	}
	slices.Sort(last)
	return Past{Usual: last[len(last)/2], Longest: last[len(last)-1]}
}

// startMargin stands for the time from when pods were bound until all ran, which the history of a merge does not have.
const startMargin = time.Minute

// PastIn is what the history of a merge tells, whose newest run is first.
func PastIn(history []v1beta1.MergeResult) Past {
	var held []time.Duration
	for _, r := range slices.Backward(history) {
		if r.Outcome == v1beta1.OutcomeMerged && r.StartTime != nil {
			held = append(held, r.EndTime.Sub(r.StartTime.Time)+startMargin)
		}
	}
	return PastOf(held)
}

// callAhead lets the first that may go ahead of a head that waits for room.
func (p *planner) callAhead(line []*merge) {
	if len(line) == 0 || p.o.Config.Merges.IsStrict(p.o.Pool) || !line[0].waitsForRoom() {
		return
	}
	head := line[0]
	if beside := p.gangBeside(head); beside {
		return
	}
	for _, t := range line[1:] {
		if t.hasStoreTrouble() {
			continue
		}
		ahead := t.aheadOf(head.state)
		switch {
		case ahead == nil:
			continue
		case t.needsSighting():
			t.d.ReadStore = true
			return
		}
		switch t.seekTurn() {
		case turnTaken:
			if t.askForPlace(); t.st.Run != nil {
				t.st.Run.Ahead = ahead
			}
			return
		case turnUnknown:
			// None of those behind may take what the answer may give.
			return
		case turnBlocked:
		}
	}
}

// waitsForRoom tells whether the merge asks as the head of the line, on record, and waits for nothing but room.
func (t *state) waitsForRoom() bool {
	run, written := t.st.Run, t.job.Object.Status.Run
	return t.isAsking() && run.Ahead == nil && written != nil && written.ID == run.ID && written.Attempt == run.Attempt &&
		t.job.Verdict.Waiting > 0 && t.isShortOfRoom() && t.countPlaced() == 0
}

// gangBeside tells whether another gang of the pool than the head's waits, or may wait, for a place.
func (p *planner) gangBeside(head *merge) bool {
	for _, t := range p.merges {
		if waits, until := t.awaitsPlace(); waits && t != head {
			if !until.IsZero() {
				p.wakeAt(until)
			}
			return true
		}
	}
	leaving, _, _ := p.pendingLeftovers(p.o.Leaving)
	return len(leaving) > 0
}

// aheadOf says why the merge may go ahead of the head; nil if it may not.
func (t *state) aheadOf(head *state) *v1beta1.MergeAhead {
	fits := t.job.Verdict.Ahead
	if t.st.Run != nil || t.goesLast() || fits == nil {
		return nil
	}
	because := &v1beta1.MergeAhead{Head: v1beta1.RefTo(head.job.Key())}
	if !fits.HeadAt.IsZero() {
		because.HeadTime = timePointer(fits.HeadAt)
	}
	// A merge that was not placed goes ahead after a pause, if its run then still ends in time.
	start := t.p.now
	if retry := t.st.AheadRetryTime; retry != nil && retry.After(start) {
		start = retry.Time
	}
	if end := start.Add(t.longestRun()); !end.After(fits.HeadAt) {
		because.EndTime = timePointer(end)
	} else if !fits.Spare {
		return nil
	}
	if start.After(t.p.now) {
		t.p.wakeAt(start)
		return nil
	}
	return because
}

// timeLimit is how long a run may hold its room, from when its pods are placed.
func (t *state) timeLimit() time.Duration {
	tier, _ := t.tierInEffect()
	limit, _ := runTimeout(t.spec, tier)
	return limit + t.startTimeout()
}

// longestRun is how long the merge holds its room at most, by its last runs or, where they are unknown, by its timeouts.
func (t *state) longestRun() time.Duration {
	if known := t.job.Past.Longest; known > 0 {
		// The last runs are measured from when their pods were bound, and until then it asks for so long.
		return min(known+aheadTimeout, t.timeLimit())
	}
	return t.timeLimit()
}

// usualRun is how long it usually holds it.
func (t *state) usualRun() time.Duration {
	if known := t.job.Past.Usual; known > 0 {
		return min(known, t.timeLimit())
	}
	return t.timeLimit()
}

// goesAhead tells whether the run asks before the head of the line.
func (t *facts) goesAhead() bool { return t.isAsking() && t.st.Run.Ahead != nil }

// standBack takes the attempt of a merge that goes ahead back, if Volcano did not place it at once or the head has room by now.
// It reports whether it did. The merge is in the line as before.
func (t *merge) standBack() (back bool) {
	run, limit, placed := t.st.Run, aheadTimeout, t.countPlaced()
	if placed == run.MinReplicas {
		return false
	}
	if placed > 0 {
		limit *= 2 // Volcano binds the pods of a gang one after another.
	}
	why := fmt.Sprintf("Volcano did not place it within %s", limit)
	if last := run.AskTime.Add(limit); t.p.now.Before(last) {
		if placed > 0 || !t.p.headFits() {
			t.p.wakeAt(last)
			return false
		}
		why = "now the head has room"
	}
	retry := metaTime(t.p.now.Add(aheadPause))
	t.st.AheadRetryTime = &retry
	t.endAttempt(v1beta1.OutcomeWithdrawn, v1beta1.ReasonGoingAhead, fmt.Sprintf("The merge went ahead of %s, and %s. Tideline "+
		"takes the attempt back. The merge keeps its place in the line, and goes ahead again from %s.", t.headName(), why,
		retry.UTC().Format(time.RFC3339)))
	return true
}

// headFits tells whether a gang that asks as the head of the line has room.
func (p *planner) headFits() bool {
	for _, t := range p.merges {
		if t.isAsking() && !t.goesAhead() && t.job.Verdict.Waiting > 0 && t.job.Verdict.Answer.Fits {
			return true
		}
	}
	return false
}

// headName names the merge that this one went ahead of.
func (t *facts) headName() string { return t.nameFor(t.st.Run.Ahead.Head) }

// nameFor names another merge of the pool.
func (t *facts) nameFor(r v1beta1.GangRef) string {
	if r.Namespace == t.job.Object.Namespace {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// whyAhead says why the head loses nothing by a merge that goes ahead of it.
func whyAhead(a *v1beta1.MergeAhead, head string) string {
	if a.EndTime == nil {
		return "it uses room that " + head + " will not need"
	}
	return fmt.Sprintf("it should end by %s, and %s should have room at %s", clockTime(a.EndTime.Time), head,
		clockTime(a.HeadTime.Time))
}

// aheadNote says of a run that went ahead of which head, and why.
func (t *facts) aheadNote() string {
	a := t.st.Run.Ahead
	if a == nil {
		return ""
	}
	return fmt.Sprintf(" It went ahead of %s: %s.", t.headName(), whyAhead(a, t.headName()))
}

// describeAhead says of a head who has gone ahead of it, three at most, and why.
func (t *state) describeAhead() string {
	const most = 3
	me, said, n := v1beta1.RefTo(t.job.Key()), strings.Builder{}, 0
	for _, o := range t.p.merges {
		run := o.st.Run
		if run == nil || run.Outcome != "" || run.Ahead == nil || run.Ahead.Head != me {
			continue
		}
		if n++; n <= most {
			fmt.Fprintf(&said, " %s goes ahead: %s.", t.nameFor(v1beta1.RefTo(o.job.Key())), whyAhead(run.Ahead, "this merge"))
		}
	}
	if n > most {
		fmt.Fprintf(&said, " %s more.", count(int32(n-most), "merge"))
	}
	return said.String()
}

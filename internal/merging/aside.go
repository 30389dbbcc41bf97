package merging

import (
	"fmt"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

const (
	// maxAsideDoublings bounds the time until a merge that was set aside asks again to 32 times the placement timeout.
	maxAsideDoublings = 5
	// asideLimit is how long a merge that was set aside goes behind all others of its line. After that its weight counts again.
	// Otherwise it would never have its turn in a line that is never empty.
	asideLimit = 24 * time.Hour
)

// Changes are when this process last saw a change of what may keep a gang from its place; zero for what did not change.
type Changes struct {
	// Started is when this process began to watch.
	Started time.Time
	// Nodes and Queue are when a node or the pool's Queue changed. Placed is when Volcano last placed a pod of any owner.
	Nodes, Queue, Placed time.Time
}

// placementTimeout is how long a gang may take to be placed once there is room for it.
func (p *planner) placementTimeout() time.Duration {
	return config.Seconds(p.o.Config.Claims.PlacementTimeoutSeconds)
}

// isShortOfRoom tells whether the attempt waits for something that others may release: room that is taken by Tideline's count, or
// an open Queue. Pods that do not exist, are gated, or cannot be judged do not wait for others, so their time runs.
func (t *state) isShortOfRoom() bool {
	v := t.job.Verdict
	return t.p.whyClosed() != nil || (v.Waiting > 0 && !v.Overdue && !v.Answer.Fits && v.Answer.Unknown == "")
}

// noteShortage records since when the attempt has had room, and reports whether it was not placed in time. A gang with some pods
// placed has twice the time, because Volcano binds the pods of a gang one after another.
func (t *merge) noteShortage() (overdue bool) {
	run := t.st.Run
	switch short := t.isShortOfRoom(); {
	// The clock stands while room is missing, and begins again from zero once there is room: Volcano may have had no time to use it.
	case short:
		run.Short, run.FitTime = true, nil
		return false
	case run.Short:
		run.Short, run.FitTime = false, timePointer(t.p.now)
	}
	placed := t.countPlaced()
	if placed == run.MinReplicas {
		return false
	}
	limit := t.p.placementTimeout()
	if placed > 0 {
		limit *= 2
	}
	last := t.fitsSince().Add(limit)
	if t.p.now.Before(last) {
		t.p.wakeAt(last)
		return false
	}
	return true
}

// fitsSince is the latest of three times: when the attempt asked, when there was room, and when the operator started. An operator
// that has just started does not know whether there was room before.
func (t *state) fitsSince() time.Time {
	since := t.st.Run.AskTime.Time
	if fit := t.st.Run.FitTime; fit != nil {
		since = fit.Time
	}
	if t.p.o.Changes.Started.After(since) {
		return t.p.o.Changes.Started
	}
	return since
}

// countPlaced counts the pods of the core that have a node.
func (t *facts) countPlaced() int32 {
	n, core := int32(0), t.corePods()
	for i := range t.st.Run.MinReplicas {
		if w := core[i]; w != nil && w.Scheduled && !w.Terminating {
			n++
		}
	}
	return n
}

// setAside takes back an attempt that is not placed although there is room, so that others have their turn. The time until it
// asks again doubles only if Volcano's scheduler was seen at work. While the scheduler is down, no merge is at fault, and all
// take turns.
func (t *merge) setAside() {
	run, aside := t.st.Run, &v1beta1.MergeSetAside{Times: 1}
	if was := t.st.SetAside; was != nil && t.sawSchedulerWork() {
		aside.Times = was.Times + 1
	} else if was != nil {
		aside.Times = max(was.Times, 1)
	}
	message := t.whyNotPlaced()
	// The doubling keeps a merge that cannot be placed from taking a placement timeout away from the others again and again.
	backoff := t.p.placementTimeout() << min(aside.Times-1, maxAsideDoublings)
	aside.Time, aside.RetryTime = metaTime(t.p.now), metaTime(t.p.now.Add(backoff))
	aside.Template, aside.Message = run.Template, clip(message, messageLimit)
	if run.ByHand {
		t.st.RunNow = "" // The run that the user asked for did not happen, so the annotation counts again.
	}
	t.endAttempt(v1beta1.OutcomeWithdrawn, v1beta1.ReasonNotPlaced, message)
	t.st.SetAside = aside
}

// sawSchedulerWork tells whether Volcano's scheduler did something since the attempt could have been placed: it placed any
// pod, or reported why it does not place this gang.
func (t *state) sawSchedulerWork() bool {
	return t.p.o.Changes.Placed.After(t.fitsSince()) || (t.job.Core != nil && t.job.Core.Unschedulable != "")
}

// whyNotPlaced says for how long the attempt was asked, what is known of why it was not placed, and what to do.
func (t *state) whyNotPlaced() string {
	run, since := t.st.Run, t.fitsSince()
	there, v := int32(len(t.corePods())), t.job.Verdict
	why := fmt.Sprintf("From %s to %s the run asked for %s of %s. Volcano placed %d of them in %s; the limit is %s "+
		"(claims.placementTimeoutSeconds of the operator's configuration). ", since.UTC().Format(time.RFC3339),
		t.p.now.UTC().Format(time.RFC3339), count(run.MinReplicas, "pod"), t.podRequests(), t.countPlaced(),
		t.p.now.Sub(since).Round(time.Second), t.p.placementTimeout())
	switch {
	case t.job.Problem != nil:
		why += t.job.Problem.Message
	case there < run.MinReplicas:
		why += fmt.Sprintf("Only %d of the pods exist. Check whether older objects with their names remain, for example because of "+
			"finalizers (kubectl get pods,podgroups,configmaps).", there)
	case v.Answer.Unknown != "":
		why += "Tideline cannot tell whether there is room, because the pods ask for " + v.Answer.Unknown + "."
	case v.Waiting > 0:
		why += "By Tideline's count there was room for them."
	default:
		why += "By Tideline's count none of them waits for room."
	}
	switch core := t.job.Core; {
	case core != nil && core.Unschedulable != "":
		why += " Volcano says: " + clip(core.Unschedulable, messageLimit/4) + "."
	case !t.sawSchedulerWork():
		return why + " Volcano placed no other pod in that time either. Check that its scheduler runs (tideline doctor)."
	}
	return why + " Check what holds the pods back (kubectl get events): a missing volume or resource claim, a scheduling " +
		"gate, or a " +
		"quota."
}

// keptAside keeps a merge that was set aside out of the line until its retry time. It returns earlier if its template, the pool's
// Queue, a node, or a volume claim of its namespace changes, because any of these may have been the cause.
func keptAside(t *state) *obstacle {
	aside := t.st.SetAside
	// A user who has corrected the template need not wait.
	if aside == nil || !t.p.now.Before(aside.RetryTime.Time) || aside.Template != t.templateHash() {
		return nil
	}
	for _, changed := range []time.Time{t.p.o.Changes.Nodes, t.p.o.Changes.Queue, t.p.o.Changes.Started, t.job.ClaimsChanged} {
		if changed.After(aside.Time.Time) {
			return nil
		}
	}
	t.p.wakeAt(aside.RetryTime.Time)
	times := ""
	if aside.Times > 1 {
		times = fmt.Sprintf(" %d times in a row, last", aside.Times)
	}
	return &obstacle{reason: v1beta1.ReasonNotPlaced, short: "not placed", message: fmt.Sprintf("%s Tideline set it aside%s "+
		"at %s, "+
		"so that other merges have their turn. It asks again at %s, or earlier if the spec, the Queue, a node or a volume claim "+
		"of its "+
		"namespace changes. Other merges that are due go first.", aside.Message, times, clockTime(aside.Time.Time),
		aside.RetryTime.UTC().Format(time.RFC3339))}
}

// goesLast tells whether the merge goes behind the others of its line, because Volcano did not place it when it last asked.
func (t *state) goesLast() bool {
	aside := t.st.SetAside
	return aside != nil && t.p.now.Before(aside.Time.Add(asideLimit))
}

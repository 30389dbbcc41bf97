package merging

import (
	"fmt"
	"time"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

const (
	// maxAsideDoublings bounds the time until a merge that was set aside asks again to 32 times the first.
	maxAsideDoublings = 5
	// asideLimit is how long a merge that was set aside goes behind all others of its line. Its weight counts again after that: in a
	// line that is never empty it would else never have its turn.
	asideLimit = 24 * time.Hour
)

// Changes are when what may keep a gang from its place last changed, as far as this process saw; zero for what did not.
type Changes struct {
	// Started is when this process began to watch.
	Started time.Time
	// Nodes, Queue and Placed are when a node changed, when the pool's Queue did, and when Volcano last placed a pod, of whomever.
	Nodes, Queue, Placed time.Time
}

// placementTimeout is how long a gang may take to be placed once there is room for it.
func (p *planner) placementTimeout() time.Duration {
	return config.Seconds(p.o.Config.Claims.PlacementTimeoutSeconds)
}

// short tells whether the attempt waits for what others have: room that is not there by Tideline's count, or an open Queue. Whose
// pods are not there, are held back, or cannot be judged waits for nothing that others could give up.
func (t *state) short() bool {
	v := t.job.Verdict
	return t.p.shut() != nil || (v.Waiting > 0 && !v.Overdue && !v.Answer.Fits && v.Answer.Unknown == "")
}

// noteShortage notes since when the attempt is not short, and reports whether it was not placed in time since. A gang that has
// some pods placed already has as long again: Volcano binds a gang one pod after another.
func (t *merge) noteShortage() (overdue bool) {
	run := t.st.Run
	switch short := t.short(); {
	case short:
		run.Short, run.FitTime = true, nil
		return false
	case run.Short:
		run.Short, run.FitTime = false, timePointer(t.p.now)
	}
	placed := t.placed()
	if placed == run.MinReplicas {
		return false
	}
	limit := t.p.placementTimeout()
	if placed > 0 {
		limit *= 2
	}
	last := t.fits().Add(limit)
	if t.p.now.Before(last) {
		t.p.wake(last)
		return false
	}
	return true
}

// fits is since when the attempt could have been placed: since it asked, since there was room, or since the operator started,
// which does not know how it was before.
func (t *state) fits() time.Time {
	since := t.st.Run.AskTime.Time
	if fit := t.st.Run.FitTime; fit != nil {
		since = fit.Time
	}
	if t.p.o.Changes.Started.After(since) {
		return t.p.o.Changes.Started
	}
	return since
}

// placed counts the pods of the core that have a node.
func (t *state) placed() int32 {
	n, core := int32(0), t.core()
	for i := range t.st.Run.MinReplicas {
		if w := core[i]; w != nil && w.Scheduled && !w.Terminating {
			n++
		}
	}
	return n
}

// setAside takes back an attempt that is not placed although it is not short, so that others have their turn. The time until it
// asks again doubles only while Volcano is seen at work: while its scheduler is down, all merges of the line take turns, and none
// is to blame.
func (t *merge) setAside() {
	run, aside := t.st.Run, &v1alpha1.MergeSetAside{Times: 1}
	if was := t.st.SetAside; was != nil && t.scheduled() {
		aside.Times = was.Times + 1
	} else if was != nil {
		aside.Times = max(was.Times, 1)
	}
	message := t.whyNotPlaced()
	backoff := t.p.placementTimeout() << min(aside.Times-1, maxAsideDoublings)
	aside.Time, aside.RetryTime = metaTime(t.p.now), metaTime(t.p.now.Add(backoff))
	aside.Template, aside.Message = run.Template, clip(message, messageLimit)
	if run.ByHand {
		t.st.RunNow = "" // What was called for has yet to be done.
	}
	t.end(v1alpha1.OutcomeWithdrawn, v1alpha1.ReasonNotPlaced, message)
	t.st.SetAside = aside
}

// scheduled tells whether Volcano was seen at work since the attempt could have been placed: it placed a pod of somebody, or said
// why it does not place this gang.
func (t *state) scheduled() bool {
	return t.p.o.Changes.Placed.After(t.fits()) || (t.job.Core != nil && t.job.Core.Unschedulable != "")
}

// whyNotPlaced says for how long the attempt was asked, what is known of why it was not placed, and what to do.
func (t *state) whyNotPlaced() string {
	run, since := t.st.Run, t.fits()
	there, v := int32(len(t.core())), t.job.Verdict
	why := fmt.Sprintf("From %s to %s the run asked for places for %s of %s, and %d of them had one after %s; it has %s for that "+
		"(claims.placementTimeoutSeconds of the operator's configuration). ", since.UTC().Format(time.RFC3339),
		t.p.now.UTC().Format(time.RFC3339), count(run.MinReplicas, "pod"), t.asks(), t.placed(),
		t.p.now.Sub(since).Round(time.Second), t.p.placementTimeout())
	switch {
	case t.job.Problem != nil:
		why += t.job.Problem.Message
	case there < run.MinReplicas:
		why += fmt.Sprintf("Only %d of the pods were there: see whether objects of their names stay (kubectl get pods,podgroups,"+
			"configmaps), by finalizers perhaps.", there)
	case v.Answer.Unknown != "":
		why += "Whether there is room Tideline cannot tell, because they ask for " + v.Answer.Unknown + "."
	case v.Waiting > 0:
		why += "By Tideline's count there was room for them."
	default:
		why += "They asked for no room."
	}
	switch core := t.job.Core; {
	case core != nil && core.Unschedulable != "":
		why += " Volcano says: " + clip(core.Unschedulable, messageLimit/4) + "."
	case !t.scheduled():
		return why + " Volcano placed no pod of anybody meanwhile: see whether its scheduler runs (tideline doctor)."
	}
	return why + " See what keeps them (kubectl get events): a volume or a resource claim that is not there, a scheduling gate, a " +
		"quota."
}

// keptAside keeps a merge that was set aside out of the line until its time has come, or what it asks for, the pool's Queue, the
// nodes, or claims of volumes in its namespace have changed.
func keptAside(t *state) *obstacle {
	aside := t.st.SetAside
	if aside == nil || !t.p.now.Before(aside.RetryTime.Time) || aside.Template != t.template() {
		return nil
	}
	for _, changed := range []time.Time{t.p.o.Changes.Nodes, t.p.o.Changes.Queue, t.p.o.Changes.Started, t.job.ClaimsChanged} {
		if changed.After(aside.Time.Time) {
			return nil
		}
	}
	t.p.wake(aside.RetryTime.Time)
	times := ""
	if aside.Times > 1 {
		times = fmt.Sprintf(" for the %d. time in a row", aside.Times)
	}
	return &obstacle{reason: v1alpha1.ReasonNotPlaced, short: "not placed", message: fmt.Sprintf("%s It was set aside%s at %s, so "+
		"that others have their turn. It asks again at %s, or when spec, Queue, nodes or volume claims of its namespace change, "+
		"behind those that can go.", aside.Message, times, clock(aside.Time.Time), aside.RetryTime.UTC().Format(time.RFC3339))}
}

// behind tells whether the merge goes behind the others of its line, because it was not placed when it asked.
func (t *state) behind() bool {
	aside := t.st.SetAside
	return aside != nil && t.p.now.Before(aside.Time.Add(asideLimit))
}

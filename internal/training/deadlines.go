package training

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// keepTime notes when the core began to run, and since when it is not whole. That time begins only when no node is to blame, and
// anew after one was: what a node does is no fault of the job's.
func (p *planner) keepTime() {
	switch {
	case p.heldByNode():
		p.st.BelowMinSince = nil
	case p.coreRuns():
		p.st.BelowMinSince = nil
		if p.st.RunningSince == nil {
			t := p.time()
			p.st.RunningSince = &t
			if p.st.StartTime == nil {
				p.markStarted()
			}
		}
	case p.st.BelowMinSince == nil && (p.st.RunningSince != nil || p.cannotStart() != nil):
		t := p.time()
		p.st.BelowMinSince = &t
	case p.st.RunningSince == nil && p.cannotStart() == nil:
		p.st.BelowMinSince = nil
	}
}

// active is how long the job has trained, over all attempts.
func (p *planner) active() time.Duration {
	d := time.Duration(p.st.ActiveSeconds) * time.Second
	if p.st.RunningSince != nil {
		d += max(0, p.now.Sub(p.st.RunningSince.Time))
	}
	return d
}

// overdue ends the job when one of its times has passed, and otherwise asks to be called when the next one does.
func (p *planner) overdue() bool {
	run, longest := p.spec.RunPolicy, p.longestRun()
	for _, timer := range []struct {
		running bool
		passed  func() time.Duration
		limit   *int32
		reason  string
		// message has a place for the limit; advice is added as it is.
		message, advice string
	}{
		{
			p.st.RunningSince != nil, p.active, longest.seconds, v1alpha1.ReasonDeadlineExceeded, longest.message, longest.advice,
		},
		{
			p.st.RunningSince == nil && p.st.BelowMinSince == nil, func() time.Duration { return p.now.Sub(p.st.Attempt.StartTime.Time) },
			run.SchedulingTimeoutSeconds, v1alpha1.ReasonSchedulingTimeout,
			"The core has waited for runPolicy.schedulingTimeoutSeconds (%s).",
			"Submit the job again when there is room, or with a smaller minReplicas.",
		},
		{
			p.st.BelowMinSince != nil, func() time.Duration { return p.now.Sub(p.st.BelowMinSince.Time) },
			ptr.To(ptr.Deref(run.BelowMinTimeoutSeconds, v1alpha1.DefaultBelowMinTimeoutSeconds)), v1alpha1.ReasonBelowMinTimeout,
			"The core was not whole for runPolicy.belowMinTimeoutSeconds (%s), and fewer workers than minReplicas cannot train.",
			p.belowMinAdvice(),
		},
	} {
		if !timer.running || timer.limit == nil {
			continue
		}
		limit := time.Duration(*timer.limit) * time.Second
		left := limit - timer.passed()
		if left <= 0 {
			p.end(v1alpha1.PhaseFailed, v1alpha1.ConditionFailed, timer.reason, fmt.Sprintf(timer.message, limit)+" "+timer.advice)
			return true
		}
		p.wake(left)
	}
	return false
}

// bound is how long a job may train, nil for as long as it likes, and what to say when it has.
type bound struct {
	seconds         *int32
	message, advice string
}

// longestRun is the job's own bound, or that of its tier where that is less.
func (p *planner) longestRun() bound {
	own := bound{
		p.spec.RunPolicy.ActiveDeadlineSeconds, "The job has trained for runPolicy.activeDeadlineSeconds (%s).",
		"Raise it, and submit the job again: it goes on from its last checkpoint.",
	}
	tier, _ := p.tier()
	if most := tier.LongestRunSeconds; most > 0 && (own.seconds == nil || most < *own.seconds) {
		return bound{
			&most, "The job has trained for as long as a job of tier " + tier.Name + " may (%s; tiers[].longestRunSeconds of the " +
				"operator's configuration).",
			"Submit it again, and it goes on from its last checkpoint, or create it of a tier that may train for longer.",
		}
	}
	return own
}

func (p *planner) belowMinAdvice() string {
	if w := p.cannotStart(); w != nil {
		return p.startError(w)
	}
	return "Submit the job again when there is room, or with a smaller minReplicas."
}

// cannotStart is the first core worker that waits for something that waiting alone does not mend.
func (p *planner) cannotStart() *podstate.Worker {
	for _, w := range p.at[:p.minimum] {
		if w != nil && !w.Terminating && w.CannotStart() {
			return w
		}
	}
	return nil
}

// startError says why the worker does not start, and what to do.
func (p *planner) startError(w *podstate.Worker) string {
	do := "correct the image of the template, or the pull secret, and create the job anew"
	if w.StartError() == v1alpha1.ReasonContainerConfigError {
		do = "correct the template, or what it names, and create the job anew if the template changes"
	}
	said := ""
	if w.WaitingMessage != "" {
		said = ": " + text.Clip(w.WaitingMessage, 512)
	}
	return fmt.Sprintf("Worker %d cannot start (%s%s): %s.", w.Index, w.Waiting, said, do)
}

// expire deletes an ended job that has outlived its time.
func (p *planner) expire() {
	ttl := p.spec.RunPolicy.TTLSecondsAfterFinished
	if ttl == nil || p.st.CompletionTime == nil {
		return
	}
	left := p.st.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(p.now)
	if p.d.DeleteJob = left <= 0; !p.d.DeleteJob {
		p.wake(left)
	}
}

package training

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// keepTime notes when the core began to run, and since when it is not whole. That time begins only when no node is to blame, and
// anew after one was: what a node does is no fault of the job's.
func (p *planner) keepTime() {
	switch {
	case heldByNode(p.State):
		p.Status.BelowMinSince = nil
	case p.CoreRuns():
		p.Status.BelowMinSince = nil
		if p.Status.RunningSince == nil {
			t := p.Time()
			p.Status.RunningSince = &t
			if p.Status.StartTime == nil {
				p.markStarted()
			}
		}
	case p.Status.BelowMinSince == nil && (p.Status.RunningSince != nil || p.CannotStart() != nil):
		t := p.Time()
		p.Status.BelowMinSince = &t
	case p.Status.RunningSince == nil && p.CannotStart() == nil:
		p.Status.BelowMinSince = nil
	}
}

// heldByNode tells whether the core is not whole because of a node: one does not answer that a worker has to leave, or one
// rejected a worker that has yet to come back, or that waits for room on another.
func heldByNode(s *jobstate.State) bool {
	if s.Stuck() != nil {
		return true
	}
	return slices.ContainsFunc(s.Status.Members, func(m v1alpha1.Member) bool {
		if m.Index >= s.Minimum || !m.Lost || m.Left || m.Rejections == 0 {
			return false
		}
		w := s.At[m.Index]
		if w == nil || w.UID == m.UID {
			return true
		}
		return !w.Scheduled && slices.ContainsFunc(s.Status.AvoidedNodes, func(n v1alpha1.AvoidedNode) bool {
			return slices.Contains(w.Avoids, n.Name)
		})
	})
}

// endIfOverdue ends the job when one of its times has passed, and otherwise asks to be called when the next one does.
func (p *planner) endIfOverdue() (ended bool) {
	run, longest := p.Spec.RunPolicy, longestRun(p.State)
	for _, timer := range []struct {
		running bool
		passed  func() time.Duration
		limit   *int32
		reason  string
		// message has a place for the limit; advice is added as it is.
		message, advice string
	}{
		{
			p.Status.RunningSince != nil, p.Active, longest.seconds, v1alpha1.ReasonDeadlineExceeded, longest.message, longest.advice,
		},
		{
			p.Status.RunningSince == nil && p.Status.BelowMinSince == nil,
			func() time.Duration { return p.Now.Sub(p.Status.Attempt.StartTime.Time) },
			run.SchedulingTimeoutSeconds, v1alpha1.ReasonSchedulingTimeout,
			"The core has waited for runPolicy.schedulingTimeoutSeconds (%s).",
			"Submit the job again when there is room, or with a smaller minReplicas.",
		},
		{
			p.Status.BelowMinSince != nil, func() time.Duration { return p.Now.Sub(p.Status.BelowMinSince.Time) },
			ptr.To(ptr.Deref(run.BelowMinTimeoutSeconds, v1alpha1.DefaultBelowMinTimeoutSeconds)), v1alpha1.ReasonBelowMinTimeout,
			"The core was not whole for runPolicy.belowMinTimeoutSeconds (%s), and fewer workers than minReplicas cannot train.",
			belowMinAdvice(p.State),
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
func longestRun(s *jobstate.State) bound {
	own := bound{
		s.Spec.RunPolicy.ActiveDeadlineSeconds, "The job has trained for runPolicy.activeDeadlineSeconds (%s).",
		"Raise it, and submit the job again: it goes on from its last checkpoint.",
	}
	tier, _ := s.Tier()
	if most := tier.LongestRunSeconds; most > 0 && (own.seconds == nil || most < *own.seconds) {
		return bound{
			&most, "The job has trained for as long as a job of tier " + tier.Name + " may (%s; tiers[].longestRunSeconds of the " +
				"operator's configuration).",
			"Submit it again, and it goes on from its last checkpoint, or create it of a tier that may train for longer.",
		}
	}
	return own
}

func belowMinAdvice(s *jobstate.State) string {
	if w := s.CannotStart(); w != nil {
		return describe.StartError(w)
	}
	return "Submit the job again when there is room, or with a smaller minReplicas."
}

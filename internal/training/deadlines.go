package training

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// keepTime notes since when the core runs, and since when it has fewer workers than minReplicas.
func (p *planner) keepTime() {
	switch {
	case heldByNode(p.State):
		// A node is to blame, not the job. The clock starts again afterwards: to pause it would take one more time in status.
		p.Status.BelowMinSince = nil
	case p.CoreRuns():
		if p.Status.BelowMinSince != nil && p.Status.RunningSince != nil {
			p.Growth().NoteRestart() // All workers meet again, now that the core is whole.
		}
		p.Status.BelowMinSince = nil
		if p.Status.RunningSince == nil {
			t := p.StatusTime()
			p.Status.RunningSince = &t
			if p.Status.StartTime == nil {
				p.markStarted()
			}
		}
	case p.Status.BelowMinSince == nil && (p.Status.RunningSince != nil || p.CannotStart() != nil):
		// A worker that cannot start, for want of an image say, holds its GPUs like a core that has lost one: that must end too.
		t := p.StatusTime()
		p.Status.BelowMinSince = &t
	case p.Status.RunningSince == nil && p.CannotStart() == nil:
		p.Status.BelowMinSince = nil
	}
}

// heldByNode is true while the core lacks a worker because of a node: a worker cannot leave a node that does not answer, or a
// node rejected a worker that is not back yet or still waits for room on another node.
func heldByNode(s *jobstate.State) bool {
	if s.StuckWorker() != nil {
		return true
	}
	return slices.ContainsFunc(s.Status.Members, func(m v1beta1.Member) bool {
		if m.Index >= s.Minimum || !m.IsLost() || m.HasLeft() {
			return false
		}
		if r, _ := s.Status.RetryOf(m.Index); r.Rejections == 0 {
			return false
		}
		w := s.At[m.Index]
		if w == nil || w.UID == m.UID {
			return true
		}
		return !w.Scheduled && slices.ContainsFunc(s.Status.AvoidedNodes, func(n v1beta1.AvoidedNode) bool {
			return slices.Contains(w.Avoids, n.Name)
		})
	})
}

// endIfOverdue fails the job when one of its timers has run out, and otherwise asks to be called when the next one does. At most
// one of the three runs at a time, except that a running job may also be below its minimum.
func (p *planner) endIfOverdue() (ended bool) {
	run, longest := p.Spec.Deadlines, longestRun(p.State)
	for _, timer := range []struct {
		running bool
		passed  func() time.Duration
		limit   *int32
		reason  string
		// message has one %s for the limit; advice is appended unformatted, because it may quote a container's message.
		message, advice string
	}{
		{
			p.Status.RunningSince != nil, p.ActiveTime, longest.seconds, v1beta1.ReasonDeadlineExceeded, longest.message, longest.advice,
		},
		{
			p.Status.RunningSince == nil && p.Status.BelowMinSince == nil,
			func() time.Duration { return p.Now.Sub(p.Status.Attempt.StartTime.Time) },
			run.SchedulingSeconds, v1beta1.ReasonSchedulingTimeout,
			"The core did not run within %s (deadlines.schedulingSeconds).",
			"Submit the job again when there is room, or with a smaller minReplicas.",
		},
		{
			p.Status.BelowMinSince != nil, func() time.Duration { return p.Now.Sub(p.Status.BelowMinSince.Time) },
			ptr.To(ptr.Deref(run.BelowMinSeconds, v1beta1.DefaultBelowMinSeconds)), v1beta1.ReasonBelowMinTimeout,
			"Fewer workers than minReplicas ran for %s (deadlines.belowMinSeconds), and fewer cannot train.",
			belowMinAdvice(p.State),
		},
	} {
		if !timer.running || timer.limit == nil {
			continue
		}
		limit := time.Duration(*timer.limit) * time.Second
		left := limit - timer.passed()
		if left <= 0 {
			p.endJob(v1beta1.PhaseFailed, v1beta1.ConditionFailed, timer.reason, fmt.Sprintf(timer.message, limit)+" "+timer.advice)
			return true
		}
		p.requeueAfter(left)
	}
	return false
}

// runLimit is how long a job may train, and what to say when it has.
type runLimit struct {
	// seconds is nil for a job that may train without limit.
	seconds         *int32
	message, advice string
}

// longestRun returns the shorter of deadlines.activeSeconds of the job and longestRunSeconds of its tier.
func longestRun(s *jobstate.State) runLimit {
	own := runLimit{
		s.Spec.Deadlines.ActiveSeconds, "The job has trained for %s, as long as deadlines.activeSeconds allows.",
		"Raise it and submit the job again: it continues from its last checkpoint.",
	}
	tier, _ := s.Tier()
	if most := tier.LongestRunSeconds; most > 0 && (own.seconds == nil || most < *own.seconds) {
		return runLimit{
			&most, "The job has trained for %s, as long as tier " + tier.Name + " allows (tiers[].longestRunSeconds of the " +
				"operator's configuration).",
			"Submit it again, and it continues from its last checkpoint, or create it in a tier that allows longer runs.",
		}
	}
	return own
}

// belowMinAdvice says what to do about a core that lacks workers: mend what keeps one from starting, or wait for room.
func belowMinAdvice(s *jobstate.State) string {
	if w := s.CannotStart(); w != nil {
		return describe.StartError(w)
	}
	return "Submit the job again when there is room, or with a smaller minReplicas."
}

package training

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// recordAttempt starts an attempt and creates nothing yet: it must be in status before its first pod.
func (p *planner) recordAttempt(number int32) {
	p.Status.Attempt = &v1alpha1.AttemptStatus{
		Number: number, StartTime: p.Time(), MinReplicas: p.Spec.MinReplicas, MaxReplicas: p.Spec.MaxReplicas,
		Model: model(p.State),
	}
	p.Status.Sizing = sized(p.State)
	p.closeAttempt()
	p.Minimum, p.Maximum = p.Spec.MinReplicas, p.Spec.MaxReplicas
	// Those that gave way wait for their cooldown in the new attempt too: it was not started for their sake.
	losses.ReleaseEvicted(p.Status, func(i int32) bool { return i < p.Minimum || i >= p.Maximum })
	p.Left, p.Completed = nil, nil // Those were workers of the attempt before.
	p.SortWorkers()
}

// closeAttempt forgets what concerns the pods of an attempt only, and adds up the time that it trained.
func (p *planner) closeAttempt() {
	p.Status.Members, p.Status.Incident = nil, nil
	p.Status.ActiveSeconds = int64(p.Active() / time.Second)
	p.Status.RunningSince, p.Status.BelowMinSince, p.Status.Checkpoint = nil, nil, nil
}

func (p *planner) markStarted() {
	t := p.Time()
	p.Status.StartTime = &t
	waited := max(0, int64(p.Now.Sub(p.Job.CreationTimestamp.Time)/time.Second))
	p.Status.WaitSeconds = &waited
}

// adoptRange starts the next attempt for a range that the attempt's workers cannot follow: when nothing is placed, because
// nobody has read the old one yet, and otherwise if the job asks for it. It records the attempt and does nothing else in this
// evaluation; pods of the old one are strays from then on.
func (p *planner) adoptRange() bool {
	a := p.Status.Attempt
	placed := p.Status.RunningSince != nil || p.CountCore(func(w *podstate.Worker) bool { return w.Scheduled }) > 0
	if !placed {
		if a.MinReplicas == p.Spec.MinReplicas && a.MaxReplicas == p.Spec.MaxReplicas {
			return false
		}
		p.recordAttempt(a.Number + 1)
		return true
	}
	if p.Spec.Elasticity.OnRangeChange != v1alpha1.RangeChangeRestart || !p.RangePending() {
		return false
	}
	if ready := p.ensureCheckpoint(forRestart); !ready {
		return false
	}
	p.recordAttempt(a.Number + 1)
	return true
}

// adoptModel starts the next attempt on another model while nothing of this one has been placed and the core fits there, and not
// here. Like adoptRange, it does nothing else in this evaluation.
func (p *planner) adoptModel() bool {
	a := p.Status.Attempt
	if a.Model == "" || p.Verdict.Model == "" || model(p.State) == a.Model || len(p.Status.Members) > 0 {
		return false
	}
	for w := range p.AttemptWorkers() {
		if w.Scheduled {
			return false
		}
	}
	p.recordAttempt(a.Number + 1)
	return true
}

// model is the model of accelerator for a new attempt: the one on which the core fits as far as is known, else that of the
// attempt before, which has fitted or was chosen, else the first listed.
func model(s *jobstate.State) string {
	a := s.Spec.Accelerator
	switch {
	case a == nil || a.Mixed || len(a.Models) == 0:
		return ""
	case slices.Contains(a.Models, s.Verdict.Model):
		return s.Verdict.Model
	case s.Job.Status.Attempt != nil && slices.Contains(a.Models, s.Job.Status.Attempt.Model):
		return s.Job.Status.Attempt.Model
	}
	return a.Models[0]
}

// sized is what use calls for in the attempt that begins.
func sized(s *jobstate.State) *v1alpha1.SizingStatus {
	if s.History == nil {
		return nil
	}
	tier, _ := s.Tier()
	return sizing.Size(trainingpod.Asks(s.Job, tier.QoS), *s.History, sizing.Rules{
		Mode: sizing.ModeOf(s.Spec.Sizing, s.Profile), Tier: tier, Before: s.Status.Sizing,
	}, s.Now)
}

// backOff keeps an attempt that began because of failures from creating workers for a while.
func (p *planner) backOff() (waits bool) {
	wait := restartBackoff(p.State)
	if wait <= 0 {
		return false
	}
	p.obstacle = backsOff(p.State, wait)
	p.wake(wait)
	return true
}

// restartBackoff is how much longer an attempt that began because of failures waits before it creates workers.
func restartBackoff(s *jobstate.State) time.Duration {
	f := s.Status.LastFailure
	if s.Status.RunningSince != nil || s.Status.Attempt.Number == 1 || f == nil || f.Time.After(s.Status.Attempt.StartTime.Time) ||
		len(s.Status.RestartTimes) == 0 {
		return 0
	}
	return min(f.Time.Add(losses.Backoff(int32(len(s.Status.RestartTimes)))).Sub(s.Now), losses.LongestBackoff)
}

// backsOff says until when an attempt that began because of failures creates no workers.
func backsOff(s *jobstate.State, wait time.Duration) *jobstate.Obstacle {
	return &jobstate.Obstacle{
		Reason: v1alpha1.ReasonBackOff,
		Message: fmt.Sprintf("Attempt %d creates its workers at %s, because attempts before it failed: restart %d of at most %d. "+
			"Until then it claims no room.", s.Status.Attempt.Number, describe.Clock(s.Now.Add(wait)),
			len(s.Status.RestartTimes), ptr.Deref(s.Spec.RunPolicy.MaxRestarts, v1alpha1.DefaultMaxRestarts)),
	}
}

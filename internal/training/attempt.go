package training

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/quota/datasets"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// recordAttempt starts an attempt in the planned status and creates nothing yet: the attempt must be written before its first
// pod exists, because pods carry its number.
func (p *planner) recordAttempt(number int32) {
	p.Status.Attempt = &v1beta1.AttemptStatus{
		Number: number, StartTime: p.StatusTime(), MinReplicas: p.Spec.MinReplicas, MaxReplicas: p.Spec.MaxReplicas,
		Tier: nextTier(p.State), NprocPerNode: p.NextProcesses(), Model: chooseModel(p.State), Checked: nextChecked(p.State),
		HostPort: rendezvous.HostPort(p.Job, p.Config.HostPorts), DataSets: nextPlaces(p.State),
	}
	p.Status.Sizing = sizeAttempt(p.State)
	p.closeAttempt()
	p.Minimum, p.Maximum = p.Spec.MinReplicas, p.Wanted
	// Surplus that gave way keeps its cooldown in the new attempt: the gang that took its place may still need it.
	losses.ReleaseEvicted(p.Status, func(i int32) bool { return i < p.Minimum || i >= p.Maximum })
	p.Left, p.Completed = nil, nil // They describe workers of the previous attempt.
	p.SortWorkers()
}

// closeAttempt drops what the status knows of the attempt's pods, and adds the time it trained to activeSeconds.
func (p *planner) closeAttempt() {
	p.Status.Members, p.Status.StrandedTime, p.Status.Retries, p.Status.Incident = nil, nil, nil, nil
	p.Status.ActiveSeconds = int64(p.ActiveTime() / time.Second)
	p.Status.RunningSince, p.Status.BelowMinSince, p.Status.Checkpoint = nil, nil, nil
	(&follower{p}).forgetPace()
}

// markStarted notes when the core first ran and how long the job waited for that, once in a job's life.
func (p *planner) markStarted() {
	t := p.StatusTime()
	p.Status.StartTime = &t
	waited := max(0, int64(p.Now.Sub(p.Job.CreationTimestamp.Time)/time.Second))
	p.Status.WaitSeconds = &waited
}

// nextTier is the name of the tier of an attempt that begins now; empty where the configuration has none.
func nextTier(s *jobstate.State) string {
	tier, _ := s.NextTier()
	return tier.Name
}

// followsSpec is true if the attempt has the range, tier, processes and data that one which began now would have.
func followsSpec(s *jobstate.State) bool {
	a, next := s.Status.Attempt, nextTier(s)
	return a.MinReplicas == s.Spec.MinReplicas && a.MaxReplicas == s.Spec.MaxReplicas && (a.Tier == next || next == "") &&
		a.NprocPerNode == s.NextProcesses() && datasets.Agree(a.DataSets, s.Spec.DataSets)
}

// adoptRange starts the next attempt when the spec asks for a range that this attempt's workers cannot follow. It does so
// freely before any core worker is placed, also for another tier or number of processes, and afterwards only if
// elasticity.rangeUpdate is Restart. Pods of the old attempt are strays from then on.
func (p *planner) adoptRange() (adopted bool) {
	a := p.Status.Attempt
	placed := p.Status.RunningSince != nil || p.CountCore(func(w *podstate.Worker) bool { return w.Scheduled }) > 0
	if !placed {
		// No agent has read the old range from its environment yet, so a new attempt costs nothing.
		if followsSpec(p.State) {
			return false
		}
		p.recordAttempt(a.Number + 1)
		return true
	}
	if p.Spec.Elasticity.RangeUpdate != v1beta1.RangeUpdateRestart || !p.RangePending() {
		return false
	}
	// Every worker restarts with the new attempt, so worker 0 saves first.
	if ready := p.ensureCheckpoint(forRestart); !ready {
		return false
	}
	p.recordAttempt(a.Number + 1)
	return true
}

// adoptModel starts the next attempt on another model of accelerator if the core fits there and no worker of this attempt has
// been placed. The model is in the affinity of each pod, which cannot change, so it takes new pods.
func (p *planner) adoptModel() (adopted bool) {
	a := p.Status.Attempt
	if a.Model == "" || p.Verdict.Model == "" || chooseModel(p.State) == a.Model || len(p.Status.Members) > 0 {
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

// chooseModel returns the model of accelerator for a new attempt: the one on which the arbiter says the core fits, else the
// previous attempt's, else the first that the job lists. It is empty for a job that names no model or mixes them.
func chooseModel(s *jobstate.State) string {
	a := s.Spec.Accelerator
	switch {
	case a == nil || a.Mixing == v1beta1.MixingAllowed || len(a.Models) == 0:
		return ""
	case slices.Contains(a.Models, s.Verdict.Model):
		return s.Verdict.Model
	case s.Job.Status.Attempt != nil && slices.Contains(a.Models, s.Job.Status.Attempt.Model):
		return s.Job.Status.Attempt.Model
	}
	return a.Models[0]
}

// sizeAttempt returns the requests that the task's measured use suggests for a new attempt; nil if nothing collects use.
func sizeAttempt(s *jobstate.State) *v1beta1.SizingStatus {
	if s.History == nil {
		return nil
	}
	tier, _ := s.NextTier()
	return sizing.SizeRequests(trainingpod.RoleAsks(s.Job, tier.QoS), *s.History, sizing.Rules{
		Mode: sizing.ModeOf(s.Spec.Sizing, s.Profile), Tier: tier, Before: s.Status.Sizing,
	}, s.Now)
}

// backOff delays the workers of an attempt that began because of failures.
func (p *planner) backOff() (waits bool) {
	wait := restartBackoff(p.State)
	if wait <= 0 {
		return false
	}
	p.obstacle = backOffObstacle(p.State, wait)
	p.requeueAfter(wait)
	return true
}

// restartBackoff is how much longer an attempt that began because of failures waits before it creates workers; zero or less if
// it need not wait.
func restartBackoff(s *jobstate.State) time.Duration {
	f := s.Status.LastFailure
	// A failure later than the attempt's start belongs to this attempt: its worker has a back-off of its own.
	if s.Status.RunningSince != nil || s.Status.Attempt.Number == 1 || f == nil || f.Time.After(s.Status.Attempt.StartTime.Time) ||
		len(s.Status.RestartTimes) == 0 {
		return 0
	}
	return f.Time.Add(losses.BackoffAfter(int32(len(s.Status.RestartTimes)))).Sub(s.Now)
}

// shortenWaits notes back-offs and the request for a checkpoint anew that were noted by a clock which has been put back since.
// Otherwise they would last until it is as late again.
func (p *planner) shortenWaits() {
	if restartBackoff(p.State) > losses.LongestBackoff {
		p.Status.LastFailure.Time = p.StatusTime()
	}
	if c := p.Status.Checkpoint; c != nil && c.RequestTime.Sub(p.Now) > p.CheckpointGrace() {
		c.Number, c.RequestTime = requestNumber(c), p.StatusTime()
	}
	latest := metav1.NewTime(p.StatusTime().Add(losses.LongestBackoff))
	for i := range p.Status.Retries {
		if r := &p.Status.Retries[i]; r.Time.After(latest.Time) {
			r.Time = latest
		}
	}
}

// backOffObstacle says until when an attempt that began because of failures creates no workers.
func backOffObstacle(s *jobstate.State, wait time.Duration) *jobstate.Obstacle {
	return &jobstate.Obstacle{
		Reason: v1beta1.ReasonBackOff,
		Message: fmt.Sprintf("Earlier attempts failed (restart %d of at most %d), so attempt %d creates its workers at %s. "+
			"Until then it claims no room.",
			len(s.Status.RestartTimes), ptr.Deref(s.Spec.Restarts.Max, v1beta1.DefaultMaxRestarts),
			s.Status.Attempt.Number, describe.FormatTime(s.Now.Add(wait))),
	}
}

package jobstate

import (
	"cmp"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/growth"
)

// A job changes its size of its own accord in steps, and pauses between two of them:
//
//	a worker gets a node        StepTime                            NextGrowthTime
//	       |---- others join ----|--------- no surplus joins --------|---- grows again, if it fits and pays
//
// A step that follows another restart by at most RestartTime costs nothing, because all workers meet again anyway.

// RestartTime is for how long after a restart of all workers others may still join them without another one: as long as torchrun
// waits for the last (the default of lastCallTimeoutSeconds).
const RestartTime = 30 * time.Second

// StepTime is how long a step takes: Volcano binds a hundred pods a second or more, in cycles of a second.
func (s *State) StepTime() time.Duration {
	return 4*time.Second + time.Duration(s.Maximum-s.Minimum)*time.Second/20
}

// LastGrowth is when a worker of the job's last step got its node; zero if it never grew.
func (s *State) LastGrowth() time.Time {
	if e := s.Status.Elasticity; e != nil && e.LastGrowthTime != nil {
		return e.LastGrowthTime.Time
	}
	return time.Time{}
}

// StepLeft is how much longer workers may join in the present step; zero or less outside one.
func (s *State) StepLeft() time.Duration {
	last := s.LastGrowth()
	if last.IsZero() {
		return 0
	}
	return min(last.Add(s.StepTime()).Sub(s.Now), s.StepTime())
}

// CooldownTime is how long the job pauses after a change of its size.
func (s *State) CooldownTime() time.Duration {
	losses := int32(0)
	if e := s.Status.Elasticity; e != nil && s.GrowsInSteps() {
		losses = e.QuickLosses
	}
	return growth.Cooldown(s.ownCooldown(), losses)
}

func (s *State) ownCooldown() time.Duration {
	return time.Duration(ptr.Deref(s.Spec.Elasticity.Growth.CooldownSeconds, v1alpha1.DefaultCooldownSeconds)) * time.Second
}

// GrowsInSteps is true if surplus joins in steps; false if it joins whenever a place is free (mode Always).
func (s *State) GrowsInSteps() bool {
	mode := s.Spec.Elasticity.Growth.Mode
	return mode == v1alpha1.GrowthOnlyIfFits || mode == v1alpha1.GrowthOnlyIfPays
}

// EvictionPause is how long evicted surplus still waits before it may return; zero or less for no longer.
func (s *State) EvictionPause() time.Duration {
	e := s.Status.Elasticity
	if e == nil || e.LastEvictionTime == nil || len(e.Evicted) == 0 {
		return 0
	}
	// The time was written by another operator's clock, perhaps: a wrong one must not make the wait longer than the cooldown.
	return min(e.LastEvictionTime.Add(s.CooldownTime()).Sub(s.Now), s.CooldownTime()+time.Second)
}

// GrowthPause is how much longer the job does not grow; zero or less if it may.
func (s *State) GrowthPause() time.Duration {
	e := s.Status.Elasticity
	if e == nil || e.NextGrowthTime == nil {
		return 0
	}
	if !s.GrowsInSteps() || s.GrowsFree() {
		return s.EvictionPause() // The gang that took the room may still need it.
	}
	// The time was written by another operator's clock, perhaps: a wrong one must not make the pause longer than any can be.
	return min(e.NextGrowthTime.Sub(s.Now), max(s.CooldownTime(), time.Hour)+time.Second)
}

// GrowsFree is true while growth needs neither a pause nor a reason: all workers meet again anyway, or the user raised the number
// to aim at.
func (s *State) GrowsFree() bool {
	e := s.Status.Elasticity
	return s.RestartLeft() > 0 || e != nil && e.Aim > 0 && s.Wanted > e.Aim
}

// RestartLeft is how much longer workers may join a restart that happened for another reason, as of the beginning of an attempt;
// zero or less for no longer.
func (s *State) RestartLeft() time.Duration {
	last := time.Time{}
	if since := s.Status.RunningSince; since != nil {
		last = since.Time
	}
	if e := s.Status.Elasticity; e != nil && e.LastRestartTime != nil && e.LastRestartTime.After(last) {
		last = e.LastRestartTime.Time
	}
	if last.IsZero() {
		return 0
	}
	return min(last.Add(RestartTime).Sub(s.Now), RestartTime)
}

// NoteRestart writes into the planned status that all workers restart now, for another reason than growth.
func (s *State) NoteRestart() {
	if s.Maximum > s.Minimum {
		s.elasticity().LastRestartTime = ptr.To(s.StatusTime())
	}
}

// NoteGrowth writes into the planned status that surplus joins, with a worker that got its node at a time, and from when on the
// job may grow again.
func (s *State) NoteGrowth(bound time.Time) {
	e := s.elasticity()
	e.LastGrowthTime = ptr.To(metav1.NewTime(bound))
	perHour := ptr.Deref(s.Spec.Elasticity.Growth.MaxPerHour, v1alpha1.DefaultGrowthsPerHour)
	debt := ptr.Deref(e.BudgetTime, metav1.Time{}).Time
	if farthest := s.Now.Add(2 * time.Hour); debt.After(farthest) {
		debt = farthest // Of another clock.
	}
	spent, next := growth.Spend(debt, bound, perHour)
	e.BudgetTime = ptr.To(metav1.NewTime(spent))
	s.pauseGrowth(bound.Add(s.CooldownTime()))
	s.pauseGrowth(next)
}

// NoteEviction writes into the planned status that surplus gives way at a time, and from when on the job may grow again.
func (s *State) NoteEviction(at metav1.Time) {
	e := s.elasticity()
	if last := s.LastGrowth(); !last.IsZero() && (e.LastEvictionTime == nil || last.After(e.LastEvictionTime.Time)) {
		e.QuickLosses = growth.CountQuickLosses(s.ownCooldown(), e.QuickLosses, max(0, at.Sub(last)))
	}
	e.LastEvictionTime = &at
	s.pauseGrowth(at.Add(s.CooldownTime()))
}

// pauseGrowth has the job not grow before a time; an earlier one than it has changes nothing.
func (s *State) pauseGrowth(until time.Time) {
	e := s.elasticity()
	if e.NextGrowthTime == nil || e.NextGrowthTime.Time.Before(until) {
		e.NextGrowthTime = ptr.To(metav1.NewTime(until))
	}
	e.Aim = s.Wanted
}

func (s *State) elasticity() *v1alpha1.ElasticityStatus {
	if s.Status.Elasticity == nil {
		s.Status.Elasticity = &v1alpha1.ElasticityStatus{}
	}
	return s.Status.Elasticity
}

// OutageTime is how long a change of size keeps the job from progress: as measured for it, else for its task, else as the spec
// assumes.
func (s *State) OutageTime() time.Duration {
	measured := time.Duration(0)
	if e := s.Status.Elasticity; e != nil {
		measured = time.Duration(e.OutageSeconds) * time.Second
	}
	assumed := ptr.Deref(s.Spec.Elasticity.Growth.OutageSeconds, v1alpha1.DefaultOutageSeconds)
	return cmp.Or(measured, s.TaskOutage, time.Duration(assumed)*time.Second)
}

// IsGated is true if the profile limits what jobs hold, so that the job must be admitted and may grow only as far as admitted.
func (s *State) IsGated() bool { return admission.LimitsOf(s.Profile).HasLimits() }

// IsAdmitted is true if the limits of the profile admit this attempt, with its present size.
func (s *State) IsAdmitted() bool {
	return s.Turn.Admitted && s.Turn.Ask == admission.AskOf(s.Job)
}

// SurplusAllowance is how many surplus workers the limits of the profile leave to the job, in whole steps.
func (s *State) SurplusAllowance() int32 {
	switch {
	case !s.IsGated():
		return math.MaxInt32
	case !s.IsAdmitted():
		return 0
	}
	return s.Turn.Surplus
}

// SurplusTarget is how many surplus workers the job may have now, in whole steps: what its range, the limits of its profile and,
// where the model judges it, the free room allow.
func (s *State) SurplusTarget() int32 {
	target := min(s.Maximum-s.Minimum, s.SurplusAllowance())
	if s.FollowsRoom() {
		target = min(target, s.Verdict.SurplusLimit)
	}
	return s.Spec.Elasticity.WholeSteps(target)
}

// FollowsRoom is true if the job creates only the surplus for which the model sees room.
func (s *State) FollowsRoom() bool {
	switch s.Spec.Elasticity.Growth.Mode {
	case v1alpha1.GrowthOnlyIfFits:
		return true
	case v1alpha1.GrowthOnlyIfPays:
		return !s.Verdict.Unjudged
	case v1alpha1.GrowthAlways:
	}
	return s.Spec.Elasticity.Step > 1 && !s.Verdict.Unjudged
}

// MustPay is true if the job grows only when that brings more than it costs.
func (s *State) MustPay() bool {
	return s.Spec.Elasticity.Growth.Mode == v1alpha1.GrowthOnlyIfPays && !s.Verdict.Unjudged && !s.GrowsFree()
}

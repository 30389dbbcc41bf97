package jobstate

import (
	"math"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// SurplusCooldown is how long evicted surplus still waits before it may return; zero or less for no longer.
func (s *State) SurplusCooldown() time.Duration {
	e := s.Status.Elasticity
	if e == nil || e.LastEvictionTime == nil || len(e.Evicted) == 0 {
		return 0
	}
	// The time was written by another operator's clock, perhaps: a wrong one must not make the wait longer than the cooldown.
	return min(e.LastEvictionTime.Add(s.CooldownTime()).Sub(s.Now), s.CooldownTime()+time.Second)
}

// CooldownTime is how long surplus that gave way is not created again.
func (s *State) CooldownTime() time.Duration {
	return time.Duration(ptr.Deref(s.Spec.Elasticity.Growth.CooldownSeconds, v1alpha1.DefaultCooldownSeconds)) * time.Second
}

// IsGated is true if the profile limits what jobs hold, so that the job must be admitted and may grow only as far as admitted.
func (s *State) IsGated() bool { return admission.LimitsOf(s.Profile).HasLimits() }

// IsAdmitted is true if the limits of the profile admit this attempt, with its present size.
func (s *State) IsAdmitted() bool {
	return s.Turn.Admitted && s.Turn.Ask == admission.AskOf(s.Job)
}

// SurplusAllowance is how many surplus workers the limits of the profile leave to the job.
func (s *State) SurplusAllowance() int32 {
	switch {
	case !s.IsGated():
		return math.MaxInt32
	case !s.IsAdmitted():
		return 0
	}
	return s.Turn.Surplus
}

package jobstate

import (
	"math"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// Cooldown is how much of the cooldown is left.
func (s *State) Cooldown() time.Duration {
	e := s.Status.Elasticity
	if e == nil || e.LastEvictionTime == nil || len(e.Evicted) == 0 {
		return 0
	}
	return min(e.LastEvictionTime.Add(s.CooldownTime()).Sub(s.Now), s.CooldownTime()+time.Second)
}

// CooldownTime is how long surplus that gave way is not created again.
func (s *State) CooldownTime() time.Duration {
	return time.Duration(ptr.Deref(s.Spec.Elasticity.CooldownSeconds, v1alpha1.DefaultCooldownSeconds)) * time.Second
}

// Gated tells whether the profile limits what jobs hold, so that the job waits for its turn and grows within it.
func (s *State) Gated() bool { return admission.Of(s.Profile).Gate() }

// Admitted tells whether the turn of this attempt has come.
func (s *State) Admitted() bool {
	return s.Turn.Admitted && s.Turn.Ask == admission.AskOf(s.Job)
}

// Allowance is how many surplus workers the limits of the profile leave to the job.
func (s *State) Allowance() int32 {
	switch {
	case !s.Gated():
		return math.MaxInt32
	case !s.Admitted():
		return 0
	}
	return s.Turn.Surplus
}

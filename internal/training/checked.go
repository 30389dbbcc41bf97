package training

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// outlivesRules is true for a job that need not meet the rules for new jobs, which may be stricter than when it began: its gang
// is there, its attempt goes on, or it was stopped, by its user or for another, and is what it was when that attempt began. One
// that was changed meanwhile begins like a new job: otherwise what a new job may not have would take three edits.
func outlivesRules(s *jobstate.State) bool {
	a := s.Job.Status.Attempt
	return s.Core != nil || a != nil && (!jobstate.IsStopped(&s.Job.Status) || a.Checked == hashChecked(s))
}

// unlessOutlived makes a rule for new jobs one that those which outlive it need not meet.
func unlessOutlived(rule func(*jobstate.State) *jobstate.Obstacle) func(*jobstate.State) *jobstate.Obstacle {
	return func(s *jobstate.State) *jobstate.Obstacle {
		if outlivesRules(s) {
			return nil
		}
		return rule(s)
	}
}

// rulesOfTiers are what a new job must meet to have its tier.
var rulesOfTiers = []func(*jobstate.State) *jobstate.Obstacle{
	unknownTier, tierNotAllowed, qosNotMet, protectedTooLong, awaitingApproval,
}

// refuseChanges holds what may change while a job trains or waits to the rules for new jobs. What they refuse is not taken
// over by the next attempt, and the job goes on as it began: for a change that it may not have it should not lose its place
// or its work.
func refuseChanges(s *jobstate.State) jobstate.Refused {
	a := s.Job.Status.Attempt
	if a == nil {
		return jobstate.Refused{} // It has nothing else to go on with, and an obstacle holds it.
	}
	var refused jobstate.Refused
	if !s.KeepsTier() {
		refused.Tier = breaksOneOf(s, rulesOfTiers)
	}
	if a.NprocPerNode != rendezvous.ChosenProcesses(s.Job) {
		refused.Processes = processesNotCounted(s)
	}
	return refused
}

// breaksOneOf is the first obstacle that rules find; nil for none.
func breaksOneOf(s *jobstate.State, rules []func(*jobstate.State) *jobstate.Obstacle) *jobstate.Obstacle {
	for _, rule := range rules {
		if found := rule(s); found != nil {
			return found
		}
	}
	return nil
}

// nextChecked is what an attempt that begins now records as checked. One that begins although the spec breaks a rule, because the
// job outlives that or keeps what it began with, has checked nothing new.
func nextChecked(s *jobstate.State) string {
	rules := append(slices.Clone(rulesOfTiers), graceTooLong, devicesNotCounted)
	if a := s.Job.Status.Attempt; a != nil && breaksOneOf(s, rules) != nil {
		return a.Checked
	}
	return hashChecked(s)
}

// hashChecked hashes what the rules for new jobs check: parts of the spec, the tier that the job asks for, and what its
// workers claim, because a template of claims may be replaced by another of its name. It leaves the range out, which may
// change at any time and whose limits always hold.
func hashChecked(s *jobstate.State) string {
	tier, _ := s.AskedTier()
	parts := []any{
		s.Spec.Template, s.Spec.Master, s.Spec.Checkpoint.GraceSeconds, s.Spec.Elasticity.Shrink.MinRunSeconds,
		s.Spec.Framework.NprocPerNode, tier.Name,
	}
	if len(s.Spec.Roles) > 0 { // Jobs without have the hash that they had before there were roles.
		parts = append(parts, s.Spec.Roles)
	}
	for i := range s.Claims.All {
		parts = append(parts, s.Claims.All[i].Asked)
	}
	content, err := json.Marshal(parts)
	if err != nil {
		return "" // A template that came from JSON goes back to it.
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// Package caps decides whose turn it is where a profile limits what one user, one job or all of its jobs hold. Turns is its
// heart, a pure function over all jobs of a profile. Where nothing is limited nobody waits for a turn: Volcano alone orders
// gangs.
package caps

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
)

// Scope is whose limit it is.
type Scope string

// Scopes of limits.
const (
	// ScopeUser limits what all pods of one user in the profile's namespaces hold together.
	ScopeUser Scope = "user"
	// ScopeJob limits what one job holds.
	ScopeJob Scope = "job"
	// ScopeQueue limits what all gangs in the profile's queue hold together: its capability. Surplus does not count, because it
	// gives way there to any gang that waits.
	ScopeQueue Scope = "queue"
)

// Limit is the most of one resource.
type Limit struct {
	Scope    Scope
	Resource corev1.ResourceName
	// Model counts only accelerators of this model; empty for all.
	Model string
	// Max is in the units of capacity.Amounts.
	Max int64
}

// of is how much of what the limit limits is in amounts on a model, which is empty if nobody knows.
func (l Limit) of(amounts capacity.Amounts, model string) int64 {
	if l.Model != "" && l.Model != model {
		return 0
	}
	return amounts[l.Resource]
}

// Limits are those of a profile.
type Limits struct {
	All []Limit
	// IgnoreOthers leaves out pods that are not of our jobs.
	IgnoreOthers bool
}

// Of returns the limits of a profile; none for nil.
func Of(profile *v1alpha1.ResourceQuotaProfile) Limits {
	if profile == nil {
		return Limits{}
	}
	l := Limits{}
	if c := profile.Spec.Caps; c != nil {
		l.All = append(limitsOf(ScopeJob, c.PerJob), limitsOf(ScopeUser, c.PerUser)...)
		l.IgnoreOthers = c.OtherWorkloads == v1alpha1.OtherWorkloadsIgnore
	}
	queue := capacity.AmountsOf(profile.Spec.Queue.Capability)
	for name, most := range queue {
		l.All = append(l.All, Limit{Scope: ScopeQueue, Resource: name, Max: most})
	}
	slices.SortStableFunc(l.All, func(a, b Limit) int {
		if a.Scope != ScopeQueue || b.Scope != ScopeQueue {
			return 0
		}
		return cmp.Compare(a.Resource, b.Resource)
	})
	return l
}

func limitsOf(scope Scope, all []v1alpha1.ResourceCap) []Limit {
	var limits []Limit
	for _, c := range all {
		name := corev1.ResourceName(c.Resource)
		most := capacity.AmountsOf(corev1.ResourceList{name: c.Max})
		limits = append(limits, Limit{Scope: scope, Resource: name, Model: c.Model, Max: most[name]})
	}
	return limits
}

// Gate tells whether jobs wait for their turn.
func (l Limits) Gate() bool { return len(l.All) > 0 }

// Never returns the first limit that a gang exceeds all by itself, so that it could never have its turn, and how much it asks
// for; nil for none.
func (l Limits) Never(core capacity.Amounts, model string) (*Limit, int64) {
	for i := range l.All {
		if asked := l.All[i].of(core, model); asked > l.All[i].Max {
			return &l.All[i], asked
		}
	}
	return nil, 0
}

// StandingOf is the standing of a user in a profile: the highest of all entries, and staff for whoever is in none.
func StandingOf(profile *v1alpha1.ResourceQuotaProfile, user string) v1alpha1.Standing {
	standing := v1alpha1.Standing("")
	for _, m := range profile.Spec.Members {
		if m.User == user && (standing == "" || rank(m.Standing) < rank(standing)) {
			standing = m.Standing
		}
	}
	return cmp.Or(standing, v1alpha1.StandingStaff)
}

// rank is 0 for the standing that goes first.
func rank(s v1alpha1.Standing) int {
	switch s {
	case v1alpha1.StandingSenior:
		return 0
	case v1alpha1.StandingIntern:
		return 2
	case v1alpha1.StandingStaff:
	}
	return 1
}

package admission

import (
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// A merge has its place in the line of a pool, whose Queue is not the profile's. What holds for it all the same: caps that it
// exceeds alone, caps of its user, where it is a Claimant, and the budgets of its owner.

// InOtherQueues are the limits that hold for a gang in another Queue than the profile's: all but the Queue's capability.
func (l Limits) InOtherQueues() Limits {
	l.All = slices.DeleteFunc(slices.Clone(l.All), func(l Limit) bool { return l.Scope == ScopeQueue })
	return l
}

// UserLimits are those of the limits of a user at which a gang counts.
func (l Limits) UserLimits(core MilliAmounts, model string) []Limit {
	var all []Limit
	for _, limit := range l.All {
		if limit.Scope == ScopeUser && limit.limitedAmount(core, model) > 0 {
			all = append(all, limit)
		}
	}
	return all
}

// MostPods is how many pods of a gang, from its core to most, the limits leave to it if its user holds nothing else. each is what
// a pod asks for.
func (l Limits) MostPods(core, most int32, each MilliAmounts, model string) int32 {
	for _, limit := range l.All {
		if asked := limit.limitedAmount(each, model); asked > 0 {
			most = min(most, int32(min(limit.Max/asked, int64(most))))
		}
	}
	return max(most, core)
}

// BudgetUsedUp is the first budget that a user has used up, as the status of a profile has it, which names the first
// [v1beta1.OverBudgetLimit] users. Only budgets with one of these consequences count. A budget of no hours is used up by all
// users, and then there is no User. Nil for none, and for no profile.
func BudgetUsedUp(
	profile *v1beta1.ResourceQuotaProfile, user string, consequences ...v1beta1.OnExceeded,
) *v1beta1.OverBudget {
	if profile == nil {
		return nil
	}
	if c := profile.Spec.Caps; c != nil {
		for _, h := range c.AcceleratorHours {
			if h.PerUser == 0 && slices.Contains(consequences, h.OnExceeded) {
				return &v1beta1.OverBudget{Window: h.Window, OnExceeded: h.OnExceeded}
			}
		}
	}
	for i := range profile.Status.OverBudget {
		if o := &profile.Status.OverBudget[i]; o.User == user && slices.Contains(consequences, o.OnExceeded) {
			return o
		}
	}
	return nil
}

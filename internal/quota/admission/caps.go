// Package admission decides which job of a profile may start next, if the profile limits what one user, one job or all its
// jobs hold. AdmitJobs is its heart, a pure function over all jobs of a profile. In a profile without limits every job may start,
// and Volcano alone orders the gangs.
package admission

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/ownership"
)

// MilliAmounts are quantities by resource as limits count them: bytes, and thousandths of everything else, because a pod may hold
// a part of an accelerator.
type MilliAmounts map[corev1.ResourceName]int64

// MilliAmountsOf converts a resource list. For what pods hold, pass the result of [config.Sharing.CountedRequests].
func MilliAmountsOf(list corev1.ResourceList) MilliAmounts {
	a := make(MilliAmounts, len(list))
	for name, quantity := range list {
		if capacity.IsBytes(name) {
			a[name] = quantity.Value()
		} else {
			a[name] = config.QuantityThousandths(quantity)
		}
	}
	return a
}

// HeldBy is what so many pods hold together, and how many they are, which no list of requests says.
func HeldBy(list corev1.ResourceList, pods int32) MilliAmounts {
	held := MilliAmountsOf(list)
	held[corev1.ResourcePods] = 1000 * int64(pods)
	return held
}

// Scope is what a limit counts.
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
	// ScopeHours limits how much of accelerators a user uses in a window of time, in thousandths of one × seconds.
	ScopeHours Scope = "hours"
	// ScopeRoom is for a job that waits for free room, or for those that come before it.
	ScopeRoom Scope = "room"
)

// Limit is the most of one resource.
type Limit struct {
	Scope    Scope
	Resource corev1.ResourceName
	// Model counts only accelerators of this model; empty for all.
	Model string
	// Max is in the units of Amounts, but for ScopeHours.
	Max int64
	// Window is that of ScopeHours.
	Window time.Duration
}

// Hour is an hour of one accelerator, in thousandths of one × seconds.
const Hour = 3_600_000

// ErrUnread is for use that is being read, as after a start of the operator.
var ErrUnread = errors.New("what was used is being read from the ledger")

// Spending is what a profile's users have used of accelerators in a window of time.
type Spending struct {
	// ByUser is in thousandths of an accelerator × seconds: 3,600,000 is an hour of one. Use without an owner is under "".
	// Callers must not change the map.
	ByUser map[string]int64
	// Age is how long ago the ledger was read: up to a minute and a half, and more while the ledger does not answer.
	Age time.Duration
	// Begun is when the ledger began. What was used before is unknown, and not counted.
	Begun time.Time
}

// limitedAmount is the part of amounts that the limit counts, on accelerators of a model. An unknown model is empty, and
// counts only at limits for all models.
func (l Limit) limitedAmount(amounts MilliAmounts, model string) int64 {
	if l.Model != "" && l.Model != model {
		return 0
	}
	return amounts[l.Resource]
}

// Limits are those of a profile.
type Limits struct {
	All []Limit
	// IgnoreOthers leaves out pods that belong to no job of Tideline.
	IgnoreOthers bool
	// Hours are the budgets that jobs wait for, and Spent is the use of each; nil if it is unknown. A budget with unknown use
	// blocks no job, unless Unread says of it that it is being read: a budget must not begin anew with each start of the operator.
	Hours  []Limit
	Spent  []map[string]int64
	Unread []bool
	// Order is how jobs are ordered while room is short; nil where Volcano alone orders them.
	Order *Order
}

// LimitsOf returns the limits of a profile; none for nil.
func LimitsOf(profile *v1beta1.ResourceQuotaProfile) Limits {
	if profile == nil {
		return Limits{}
	}
	l := Limits{}
	if c := profile.Spec.Caps; c != nil {
		l.All = append(limitsOf(ScopeJob, c.PerJob), limitsOf(ScopeUser, c.PerUser)...)
		l.Hours = hoursOf(c.AcceleratorHours)
		l.IgnoreOthers = c.OtherWorkloads == v1beta1.OtherWorkloadsIgnore
	}
	queue := MilliAmountsOf(profile.Spec.Queue.Capability)
	for _, name := range slices.Sorted(maps.Keys(queue)) {
		l.All = append(l.All, Limit{Scope: ScopeQueue, Resource: name, Max: queue[name]})
	}
	l.Order = orderOf(profile.Spec.Order)
	return l
}

func limitsOf(scope Scope, all []v1beta1.ResourceCap) []Limit {
	var limits []Limit
	for _, c := range all {
		name := corev1.ResourceName(c.Resource)
		most := MilliAmountsOf(corev1.ResourceList{name: c.Max})
		limits = append(limits, Limit{Scope: scope, Resource: name, Model: c.Model, Max: most[name]})
	}
	return limits
}

// hoursOf are the budgets that jobs wait for, or that keep surplus from growing.
func hoursOf(all []v1beta1.HourCap) []Limit {
	var limits []Limit
	for _, h := range all {
		if h.OnExceeded == v1beta1.ExceededNotify {
			continue
		}
		limits = append(limits, Limit{Scope: ScopeHours, Max: int64(h.PerUser) * Hour, Window: h.Window.Duration})
	}
	return limits
}

// FirstExceeded returns the first budget that a user has used up, and how much was used; nil for none.
func (l Limits) FirstExceeded(user string) (*Limit, int64) {
	for i, h := range l.Hours {
		if i < len(l.Spent) && l.Spent[i] != nil && user != "" && l.Spent[i][user] >= h.Max {
			return &l.Hours[i], l.Spent[i][user]
		}
	}
	return nil, 0
}

// blockedByBudget is why budgets let a user have no more accelerators; nil if they do.
func (l Limits) blockedByBudget(user string) *Blocked {
	if h, used := l.FirstExceeded(user); h != nil {
		return &Blocked{Limit: *h, User: user, Used: used}
	}
	if i := slices.Index(l.Unread, true); i >= 0 && user != "" {
		return &Blocked{Limit: l.Hours[i], User: user, Unread: true}
	}
	return nil
}

// HasLimits tells whether anything is limited.
func (l Limits) HasLimits() bool { return len(l.All)+len(l.Hours) > 0 }

// Gates tells whether jobs need admission at all.
func (l Limits) Gates() bool { return l.HasLimits() || l.Order != nil }

// NeverFits returns the first limit that a gang exceeds by itself, and how much the gang asks for; nil for none. Such a job can
// never start.
func (l Limits) NeverFits(core MilliAmounts, model string) (*Limit, int64) {
	for i := range l.All {
		if asked := l.All[i].limitedAmount(core, model); asked > l.All[i].Max {
			return &l.All[i], asked
		}
	}
	return nil, 0
}

// AskOf identifies the job and its attempt.
func AskOf(job *v1beta1.ElasticTrainingJob) string {
	if job.Status.Attempt == nil {
		return string(job.UID)
	}
	return string(job.UID) + "/" + job.Status.Attempt.ID()
}

// StandingOf is the standing of an owner in a profile: the highest of all member entries that match, and staff if none does.
func StandingOf(profile *v1beta1.ResourceQuotaProfile, owner ownership.Owner) v1beta1.Standing {
	standing := v1beta1.Standing("")
	for m := range owner.MemberEntries(profile) {
		if standing == "" || standingRank(m.Standing) < standingRank(standing) {
			standing = m.Standing
		}
	}
	return cmp.Or(standing, v1beta1.StandingStaff)
}

// standingRank orders standings: 0 goes first.
func standingRank(s v1beta1.Standing) int {
	switch s {
	case v1beta1.StandingSenior:
		return 0
	case v1beta1.StandingIntern:
		return 2
	case v1beta1.StandingStaff:
	}
	return 1
}

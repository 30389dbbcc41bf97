package admission

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Order decides who goes first while room is short:
//
//	tier | level: intern 3, staff 2, senior 1, less 1 for each Ageing waited | below 1 the longest wait, else the least use
//
// Without it only jobs at one limit are ordered, by tier, standing and age.
type Order struct {
	Ageing, HalfLife, LongestHold time.Duration
	// Used is what each user used, in the unit of Spending, with DecayedUse; nil if that is unknown, and then all are equal.
	Used map[string]int64
	// Seat takes room for the gang of a job that asks, and returns false if there is none beside those that were seated or
	// refused before it. A job that was held long takes room from those that were refused. nil seats all.
	Seat func(c *Claimant, heldLong bool) bool
}

func orderOf(spec *v1beta1.ProfileOrder) *Order {
	if spec == nil {
		return nil
	}
	return &Order{
		Ageing: max(durationOr(spec.Ageing, 24*time.Hour), time.Second), HalfLife: durationOr(spec.UseHalfLife, 168*time.Hour),
		LongestHold: durationOr(spec.LongestHold, 10*time.Minute),
	}
}

func durationOr(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}

// HalfLives is over how many half-lives use counts.
const HalfLives = 4

// DecayedUse is what users used, if that of the last half-life counts whole, that of the one before half, and so on. within has
// the use in the last one, two and so on half-lives.
func DecayedUse(within [HalfLives]map[string]int64) map[string]int64 {
	used := map[string]int64{}
	for user, longest := range within[HalfLives-1] {
		before := int64(0)
		for i := range HalfLives {
			until := within[i][user]
			if i == HalfLives-1 {
				until = longest
			}
			used[user] += max(until-before, 0) >> i
			before = max(before, until)
		}
	}
	return used
}

// level is that of a claimant; the lowest goes first, and 0 before all others of the tier.
func (o *Order) level(c *Claimant, now time.Time) int64 {
	rank := int64(standingRank(c.Standing))
	if o == nil {
		return rank
	}
	if rank++; c.Since.IsZero() || !now.After(c.Since) {
		return rank
	}
	return max(rank-int64(now.Sub(c.Since)/o.Ageing), 0)
}

// firstAt is from when on a claimant goes before all newer ones of its tier.
func (o *Order) firstAt(c *Claimant) time.Time {
	return c.Since.Add(time.Duration(standingRank(c.Standing)+1) * o.Ageing)
}

// compare orders claimants. The names make the order the same in every evaluation.
func (o *Order) compare(a, b *Claimant, now time.Time) int {
	level := o.level(a, now)
	if by := cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(level, o.level(b, now))); by != 0 {
		return by
	}
	by := 0
	switch {
	case o == nil:
	case level == 0:
		by = a.Since.Compare(b.Since)
	default:
		by = cmp.Compare(o.Used[a.User]/Hour, o.Used[b.User]/Hour) // Whole hours, so that the order does not change with each reading.
	}
	return cmp.Or(by, a.Created.Compare(b.Created),
		strings.Compare(a.Job.Namespace, b.Job.Namespace), strings.Compare(a.Job.Name, b.Job.Name))
}

// seat returns whether there is room for the gang of a claimant, as far as the order is concerned. A merge has its place in the
// line of its pool.
func (o *Order) seat(c *Claimant, now time.Time) bool {
	return o == nil || c.Job.Merge || o.Seat == nil || o.Seat(c, now.Sub(c.Since) >= o.LongestHold)
}

// waitForRoom is what a job waits for that the order holds back.
func (t *table) waitForRoom(c *Claimant) *Blocked {
	o, line := t.limits.Order, slot{limit: -1}
	b := &Blocked{
		Limit: Limit{Scope: ScopeRoom}, User: c.User, Behind: t.last[line],
		First: o.firstAt(c), Fits: c.Since.Add(o.LongestHold),
	}
	t.last[line] = c.Job
	t.waiting[line]++
	b.Place = t.waiting[line]
	return b
}

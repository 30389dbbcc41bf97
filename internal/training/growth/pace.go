package growth

import (
	"math"
	"time"
)

const (
	// LongestCooldown bounds what doubling makes of a cooldown; a longer one that the job asks for is kept.
	LongestCooldown = time.Hour
	// mostDoublings is how often a cooldown is doubled: more than enough for any to reach LongestCooldown.
	mostDoublings = 16
)

// CooldownAfter is the pause before the next growth: the job's own, doubled for each time after the first that it lost at once
// what it had gained. quickLosses is how often in a row it has.
func CooldownAfter(own time.Duration, quickLosses int32) time.Duration {
	doublings := min(max(quickLosses-1, 0), mostDoublings)
	return min(own<<doublings, max(LongestCooldown, own))
}

// CountQuickLosses returns how often in a row the job has lost at once what it had gained, now that surplus gives way which it
// gained kept ago. Surplus that stayed for less than enough was not worth its restarts; each whole time of enough that it stayed
// makes up for one such loss.
func CountQuickLosses(enough time.Duration, quickLosses int32, kept time.Duration) int32 {
	switch {
	case kept < enough:
		return min(quickLosses+1, mostDoublings+1)
	case enough == 0:
		return 0
	}
	return max(0, quickLosses-int32(min(kept/enough, math.MaxInt32)))
}

// ChargeBudget charges one growth to an hourly budget. The budget is a leaky bucket, kept as one time (ITU-T I.371, the generic
// cell rate algorithm in its virtual scheduling form): debt is the time at which all growths so far are paid back. It returns
// the debt with this growth, and the earliest time of the next.
func ChargeBudget(debt, now time.Time, perHour int32) (spent, next time.Time) {
	if debt.Before(now) {
		debt = now
	}
	spent = debt.Add(time.Hour / time.Duration(max(perHour, 1)))
	return spent, spent.Add(-time.Hour)
}

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

// Cooldown is the pause before the next growth: the job's own, doubled for each time after the first that it lost at once what it
// had gained. quickLosses is how often in a row it has.
func Cooldown(own time.Duration, quickLosses int32) time.Duration {
	doublings := min(max(quickLosses-1, 0), mostDoublings)
	return min(own<<doublings, max(LongestCooldown, own))
}

// CountQuickLosses returns how often in a row the job has lost at once what it had gained, now that surplus gives way which it
// gained kept ago. Surplus that stayed for less time than the job would wait for it was not worth its restarts; each whole
// cooldown that it stayed makes up for one such loss.
func CountQuickLosses(own time.Duration, quickLosses int32, kept time.Duration) int32 {
	waits := Cooldown(own, quickLosses)
	switch {
	case kept < waits:
		return min(quickLosses+1, mostDoublings+1)
	case waits == 0:
		return 0
	}
	return max(0, quickLosses-int32(min(kept/waits, math.MaxInt32)))
}

// Spend accounts for a growth, of which an hour may have a number: a leaky bucket kept as one time (ITU-T I.371, the virtual
// scheduling form of the generic cell rate algorithm). debt is until when growths so far are paid for. It returns the debt with
// this one, and the earliest time of the next.
func Spend(debt, now time.Time, perHour int32) (spent, next time.Time) {
	if debt.Before(now) {
		debt = now
	}
	spent = debt.Add(time.Hour / time.Duration(max(perHour, 1)))
	return spent, spent.Add(-time.Hour)
}

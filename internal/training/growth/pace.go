package growth

import (
	"math"
	"time"
)

const (
	// LongestCooldown bounds what doubling makes of a cooldown; a longer one that the job asks for is kept.
	LongestCooldown = time.Hour
	// mostDoublings is how often a cooldown can be doubled.
	mostDoublings = 16
)

// Cooldown is the pause before the next growth: the job's own, doubled for each time in a row that it lost what it had gained.
func Cooldown(own time.Duration, doublings int32) time.Duration {
	return min(own<<min(max(doublings, 0), mostDoublings), max(LongestCooldown, own))
}

// NextDoublings returns how often the cooldown is doubled from now on, when surplus gives way that was gained kept ago. Surplus
// that stayed for less time than the job had waited for it was not worth the wait; each whole cooldown that it stayed takes one
// doubling back.
func NextDoublings(own time.Duration, doublings int32, kept time.Duration) int32 {
	waited := Cooldown(own, doublings)
	if kept < waited {
		if waited >= max(LongestCooldown, own) {
			return doublings // It cannot become longer.
		}
		return min(doublings+1, mostDoublings)
	}
	if waited == 0 {
		return 0
	}
	return max(0, doublings-int32(min(kept/waited, math.MaxInt32)))
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

package sizing

import (
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Windows, in days.
const (
	// DefaultWindowDays is the window where a profile says nothing else: two weeks, so that need that comes back after more than
	// one is remembered.
	DefaultWindowDays = 14
	// MostWindowDays is the longest that a profile may say.
	MostWindowDays = 28
)

// WindowDays is the window of a profile, in days. profile is nil for a namespace without one.
func WindowDays(profile *v1beta1.ResourceQuotaProfile) int {
	if profile == nil || profile.Spec.Sizing == nil || profile.Spec.Sizing.Window == nil {
		return DefaultWindowDays
	}
	return min(max(int(profile.Spec.Sizing.Window.Duration/(day*time.Second)), 1), MostWindowDays)
}

// Part is a container of a role; empty for what is known of its pods as a whole.
type Part struct {
	Role      Role
	Container string
}

// History is what is known of a task when a job of it starts.
type History struct { //nolint:recvcheck // only Add changes it
	// WindowDays is the length of the window, from 1 to 28 days back.
	WindowDays int
	// Usage of the window, merged, by part. A part that is not in it was never seen.
	Usage map[Part]Usage
	// Days of the parts that were seen, in any order.
	Days map[Part][]Day
	// Killed are the highest limits of memory, in bytes, at which parts ran out of it, as far back as the ledger tells. So it
	// outlasts the window, and is one number for a part.
	Killed map[Part]int64
	// Unavailable is why recent use is unknown, for users; empty if it is known.
	Unavailable string
	// AsOf is until when use is known, if recent use is not; zero if it is, and for never.
	AsOf time.Time
}

// Add adds what a part used on a day, which began at a time. Each day is added once.
func (h *History) Add(part Part, at time.Time, u Usage) {
	if h.Usage == nil {
		h.Usage, h.Days = map[Part]Usage{}, map[Part][]Day{}
	}
	h.Usage[part] = h.Usage[part].Merge(u)
	if d := dayOf(at, u); d.CPU > 0 || d.Memory > 0 {
		h.Days[part] = append(h.Days[part], d)
	}
}

// RememberKill has the kill of a part at a limit of memory, however long ago.
func (h *History) RememberKill(part Part, limit int64) {
	if h.Killed == nil {
		h.Killed = map[Part]int64{}
	}
	h.Killed[part] = max(h.Killed[part], limit)
}

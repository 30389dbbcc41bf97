// Package statuspace decides how soon a change of status is written, for every kind, and has the form of events.
package statuspace

import "time"

// Pace says how soon a change of status must be written. Writing each change at once would cost a write per pod that becomes
// ready; waiting lets a burst settle into one.
type Pace int

const (
	// Never: the statuses are equal.
	Never Pace = iota
	// Lazy: only wording differs, such as figures in a message.
	Lazy
	// Calm: counts or reasons differ, such as the number of ready workers.
	Calm
	// Soon: workers were lost; several losses of one cause arrive together.
	Soon
	// Now: the phase changed, or the status must remember something before the operator acts on it.
	Now
)

// How long each pace holds a change back, and the least time between two writes.
const (
	SoonDelay    = time.Second
	calmSettle   = 2 * time.Second
	CalmInterval = 5 * time.Second
	lazyInterval = time.Minute
)

// Event is an event to emit.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type            string
	Reason, Message string
}

// MessageLimit is the longest message of an event that the API server takes (events.k8s.io/v1).
const MessageLimit = 1024

// TimeToWait is how much longer a change of this pace must wait, given when it was first noticed and when the status was last
// written; zero or less means write now. A zero written counts as long ago.
func (p Pace) TimeToWait(noticed, written, now time.Time) time.Duration {
	switch p {
	case Now:
		return 0
	case Soon:
		return noticed.Add(SoonDelay).Sub(now)
	case Calm:
		return max(noticed.Add(calmSettle).Sub(now), written.Add(CalmInterval).Sub(now))
	default:
		return max(noticed.Add(calmSettle).Sub(now), written.Add(lazyInterval).Sub(now))
	}
}

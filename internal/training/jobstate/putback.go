package jobstate

import "time"

const (
	// firstPause is how long the operator leaves the labels of workers alone after it put some back. It doubles with each time, up
	// to longestPause: somebody may set them again and again.
	firstPause, longestPause = 10 * time.Second, 10 * time.Minute
	// quietTime is after how long without putting anything back the operator begins anew.
	quietTime = time.Hour
)

// PutBack is how often labels or annotations of a job's workers were put back in a row, and when last. It is zero if none were.
type PutBack struct {
	Last  time.Time
	Times int
}

// PauseAt is how much longer the operator leaves the labels of workers alone; zero or less if it may put them back. A clock that
// was put back ends the pause.
func (b PutBack) PauseAt(now time.Time) time.Duration {
	if b.Times == 0 || now.Before(b.Last) {
		return 0
	}
	pause := longestPause
	if doublings := b.Times - 1; doublings < 6 {
		pause = firstPause << doublings
	}
	return b.Last.Add(pause).Sub(now)
}

// AfterRestoring is what to remember after something was put back now.
func (b PutBack) AfterRestoring(now time.Time) PutBack {
	if now.Before(b.Last) || now.Sub(b.Last) > quietTime {
		b.Times = 0
	}
	return PutBack{Last: now, Times: b.Times + 1}
}

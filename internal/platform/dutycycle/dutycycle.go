// Package dutycycle bounds how much of a processor work takes, by a rest after it that is so many times as long.
package dutycycle

import (
	"sync"
	"time"
)

const (
	// ShortWork is followed by no rest.
	ShortWork = 100 * time.Millisecond
	// RestPerWork is how many times as long as longer work the rest after it is.
	RestPerWork = 9
)

// Rest is for how many times as long as work took there is a rest after it, and for how long at most.
type Rest struct {
	Times int
	Most  time.Duration
}

// After is how long the rest is after work that took so long.
func (r Rest) After(took time.Duration) time.Duration {
	return min(time.Duration(r.Times)*took, r.Most)
}

// Limiter has one piece of work of its kind be done at a time, and rests after each that took long: all that users ask for of
// that kind takes a tenth of a processor at most. Its zero value is ready.
type Limiter struct {
	working sync.Mutex
	// rested is when it may work again.
	rested time.Time
}

// DoWork does the work and returns true; false, at once and without work, while other work is done or the limiter rests. now is
// the clock by which both are measured.
func (l *Limiter) DoWork(now func() time.Time, work func()) bool {
	if !l.working.TryLock() {
		return false
	}
	defer l.working.Unlock()
	began := now()
	if began.Before(l.rested) {
		return false
	}
	work()
	if took := now().Sub(began); took > ShortWork {
		l.rested = now().Add(RestPerWork * took)
	}
	return true
}

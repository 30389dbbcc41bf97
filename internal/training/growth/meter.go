package growth

import "time"

// Meter measures how long changes of size keep a training from progress, from the times at which its progress was seen to
// advance:
//
//	progress   1 2 3 4 5         change              6 7 8 9
//	           | | | | |           v                 | | | |
//	                     <--- longest pause, --->
//	                     less the usual one: outage
//
// The zero value has seen nothing.
type Meter struct {
	progress int64
	advanced time.Time
	// usual is the mean pause between two advances while the size does not change.
	usual time.Duration
	// changed is when the size changed last; zero once its outage was measured. longest is the longest pause since then.
	changed time.Time
	longest time.Duration
	outage  time.Duration
	count   int
}

const (
	// settleTime is how long after a change its outage may begin: agents of torchrun look for new workers every half minute.
	settleTime = 2 * time.Minute
	// longestOutage bounds a measurement: a training that made no progress for longer has another trouble.
	longestOutage = time.Hour
	// smoothing is the weight of a new value in a mean.
	smoothing = 0.3
)

// NoteChange notes that the training changed its size. One that happens while another is measured belongs to it.
func (m *Meter) NoteChange(now time.Time) {
	if m.advanced.IsZero() || !m.changed.IsZero() {
		return
	}
	m.changed, m.longest = now, 0
}

// NoteProgress notes what the training reports as its progress.
func (m *Meter) NoteProgress(progress int64, now time.Time) {
	if progress <= m.progress {
		return
	}
	pause := now.Sub(m.advanced)
	first := m.advanced.IsZero() || pause < 0
	m.progress, m.advanced = progress, now
	switch {
	case first:
	case m.changed.IsZero():
		m.usual = mean(m.usual, min(pause, longestOutage))
	default:
		m.longest = max(m.longest, pause)
		m.close(now)
	}
}

// close ends a measurement once the outage must have been.
func (m *Meter) close(now time.Time) {
	if now.Sub(m.changed) < settleTime {
		return
	}
	if m.longest <= longestOutage {
		// Zero would stand for nothing measured.
		m.outage = max(time.Second, m.longest-m.usual)
		m.count++
	}
	m.changed = time.Time{}
}

// Outage returns the outage that was measured last, and how many were; zero for none.
func (m *Meter) Outage() (outage time.Duration, count int) { return m.outage, m.count }

// SmoothOutage joins a new outage with what was known; zero for nothing.
func SmoothOutage(known, measured time.Duration) time.Duration { return mean(known, measured) }

func mean(known, value time.Duration) time.Duration {
	if known == 0 {
		return value
	}
	return known + time.Duration(smoothing*float64(value-known))
}

package main

import (
	"math"
	"slices"
	"time"
)

// record is what was measured in one pool. All but early is of the time after the warm-up.
type record struct {
	late, early []bool // by model: its full model was late; early before the warm-up
	ages        []float64
	largeAges   []float64 // ages ÷ intervals at which full models were replaced
	waits       []float64 // minutes from due to placed
	idle        float64   // machine-seconds free while a waiting merge would fit
	wedged      time.Time // since when merges wait and none runs
	deadlocks   int
	delays      []float64 // minutes that heads started later than they would have alone
	ahead       int       // merges that went ahead
	stoodBack   int
	all         []run // from the beginning
}

func newRecord(models int) *record {
	return &record{late: make([]bool, models), early: make([]bool, models)}
}

func isCounted(at time.Time) bool { return at.After(morning.Add(warmUp)) }

func (r *record) noteAge(now time.Time, m *model, number int, age time.Duration) {
	switch late := age.Seconds() > lateFactor*m.interval.Seconds(); {
	case isCounted(now):
		r.late[number] = r.late[number] || late
	default:
		r.early[number] = r.early[number] || late
	}
}

// noteFull notes the age that a full model had when it was replaced.
func (r *record) noteFull(now time.Time, m *model, number int, age time.Duration) {
	r.noteAge(now, m, number, age)
	if !isCounted(now) {
		return
	}
	part := age.Seconds() / m.interval.Seconds()
	r.ages = append(r.ages, part)
	if m.machines >= large {
		r.largeAges = append(r.largeAges, part)
	}
}

func (r *record) noteWait(now time.Time, wait time.Duration) {
	if isCounted(now) {
		r.waits = append(r.waits, wait.Minutes())
	}
}

// noteSpan notes a span in which nothing changed.
func (r *record) noteSpan(from, until time.Time, free int32, fits, wedged bool) {
	if fits && isCounted(until) {
		r.idle += float64(free) * until.Sub(from).Seconds()
	}
	switch {
	case !wedged:
		r.wedged = time.Time{}
	case r.wedged.IsZero():
		r.wedged = from
	}
	if wedged && until.Sub(r.wedged) >= stuck {
		r.deadlocks++
		r.wedged = until
	}
}

// summary is what is compared.
type summary struct {
	late, early, age50, age99, large99, wait99, idle, deadlocks float64
	delay50, delay99, delayMost, ahead, stoodBack               float64
}

func (r *record) summarize() summary {
	count := func(of []bool) (n float64) {
		for _, is := range of {
			if is {
				n++
			}
		}
		return n
	}
	return summary{
		late: count(r.late), early: count(r.early), age50: quantile(r.ages, 0.5), age99: quantile(r.ages, 0.99),
		large99: quantile(r.largeAges, 0.99), wait99: quantile(r.waits, 0.99), idle: r.idle / (horizon - warmUp).Seconds(),
		deadlocks: float64(r.deadlocks), delay50: quantile(r.delays, 0.5), delay99: quantile(r.delays, 0.99),
		delayMost: quantile(r.delays, 1), ahead: float64(r.ahead), stoodBack: float64(r.stoodBack),
	}
}

// quantile is the nearest rank; 0 of none.
func quantile(of []float64, q float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

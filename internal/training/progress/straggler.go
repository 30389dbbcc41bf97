package progress

import (
	"fmt"
	"strconv"
	"time"
)

const (
	// slowAt is how many times as long as the median worker one must take for its part of a step, and enoughSlow in how many reports
	// in a row it must be the slowest. Chance makes a worker the slowest of one report, not of six.
	slowAt, enoughSlow = 1.25, 6
	// mostOthers is how many reports in a row may say otherwise before it is forgotten.
	mostOthers = 2
)

// Slowest is which worker took longest for its own part of the steps since the report before, without waiting for others.
type Slowest struct {
	// Worker is its index, from 0.
	Worker int32
	// Slowness is how many times as long as the median worker it took, from 1 to 1e6; 0 if the line does not say.
	Slowness float64
}

// set takes one value of a line.
func (s *Slowest) set(key, value string) (err error) {
	if key == "slowness" {
		s.Slowness, err = strconv.ParseFloat(value, 64)
		if err != nil || !(s.Slowness >= 1 && s.Slowness <= mostSlowness) {
			return fmt.Errorf("slowness=%s is no number from 1 to 1e6", quote(value))
		}
		return nil
	}
	worker, err := wholeNumber(key, value)
	if err == nil && worker > mostIndex {
		err = fmt.Errorf("slowest=%s is no index of a worker", quote(value))
	}
	s.Worker = int32(min(worker, mostIndex))
	return err
}

// Straggler is a worker for which all others wait in each step.
type Straggler struct {
	// Worker is its index, Slowness as in [Slowest], over all reports since then.
	Worker   int32
	Slowness float64
	Since    time.Time
}

// row are reports in a row that name one worker.
type row struct {
	worker  int32
	since   time.Time
	reports int
	mean    float64
	// others is how many reports have said otherwise since the last that named it.
	others int
}

// note takes what a report says of the slowest worker.
func (r *row) note(s Slowest, at time.Time) {
	slow := s.Slowness >= slowAt
	switch {
	case s.Slowness == 0:
	case slow && r.reports > 0 && s.Worker == r.worker:
		r.reports++
		r.mean += (s.Slowness - r.mean) / float64(r.reports)
		r.others = 0
	case r.reports >= enoughSlow && r.others < mostOthers:
		r.others++
	case slow:
		*r = row{worker: s.Worker, since: at, reports: 1, mean: s.Slowness}
	default:
		*r = row{}
	}
}

// straggler is the worker that all others wait for; nil for none.
func (r *row) straggler() *Straggler {
	if r.reports < enoughSlow {
		return nil
	}
	return &Straggler{Worker: r.worker, Slowness: r.mean, Since: r.since}
}

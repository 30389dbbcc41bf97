package main

import (
	"fmt"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// tally notes what a summary says of a pool.
type tally struct {
	// ended has the runs that ended, by id, and merged how many full models were made of each model.
	ended  map[string]bool
	merged map[string]int
	// broken says of each run that ended without a full model how.
	broken []string
	// waiting and merging are the largest numbers of gangs that waited for a place, and of merges that ran, at one moment.
	waiting, merging int
	// wait, full and increment are the longest that anybody was in the line, and that a model went without a new one of these.
	wait, full, increment record
}

// record is the largest of several times, and of which model it was.
type record struct {
	model string
	time  time.Duration
}

// or is the larger of a record and another time.
func (r record) or(model string, t time.Duration) record {
	if t > r.time {
		return record{model, t}
	}
	return r
}

func (r record) String() string { return fmt.Sprintf("%s (%s)", shown(r.time), r.model) }

func newTally() *tally { return &tally{ended: map[string]bool{}, merged: map[string]int{}} }

// note compares a view with what has been seen so far.
func (t *tally) note(v *poolView, now time.Time) {
	t.waiting, t.merging = max(t.waiting, v.waiting), max(t.merging, v.merging())
	t.full = t.full.or(oldest(v.fulls, now))
	t.increment = t.increment.or(oldest(v.increments, now))
	for name, m := range v.merges {
		for _, r := range m.Status.History {
			switch {
			case t.ended[r.Run]:
				continue
			case r.Outcome == v1beta1.OutcomeMerged:
				t.merged[name]++
			default:
				t.broken = append(t.broken, fmt.Sprintf("%s of %s: %s", r.Outcome, name, r.Message))
			}
			t.ended[r.Run] = true
		}
		st := &m.Status
		switch {
		case st.QueueTime == nil:
		case st.Run != nil && st.Run.RunTime != nil:
			t.wait = t.wait.or(name, st.Run.RunTime.Sub(st.QueueTime.Time))
		default:
			t.wait = t.wait.or(name, now.Sub(st.QueueTime.Time))
		}
	}
}

// least is how often the model that was merged the least was merged.
func (t *tally) least(models int) int {
	if len(t.merged) < models {
		return 0
	}
	n := len(t.ended)
	for _, times := range t.merged {
		n = min(n, times)
	}
	return n
}

// held returns an error for the first thing that should not have happened.
func (t *tally) held() error {
	switch {
	case len(t.broken) > 0:
		return fmt.Errorf("%d merges ended without a full model, the first: %s", len(t.broken), t.broken[0])
	case t.waiting > 1:
		return fmt.Errorf("%d gangs waited for a place at one moment, not one", t.waiting)
	case t.full.time > 2*interval:
		return fmt.Errorf("a full model was %s old, more than two intervals (%s)", t.full, shown(2*interval))
	}
	return nil
}

func (t *tally) String() string {
	merges := 0
	for _, times := range t.merged {
		merges += times
	}
	return fmt.Sprintf("%d merges of %d models, %d at a time at most. The longest wait in line was %s, the oldest full model was "+
		"%s old, the oldest newest increment %s; never more than %d gang waited for a place, and nobody laid a hand on anything.",
		merges, len(t.merged), t.merging, t.wait, t.full, t.increment, t.waiting)
}

package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A record is what happened in one pool under one strategy. Times are simulated ones, since the beginning.
type record struct {
	merges []merge
	steps  []step
}

// never is the time of what has not happened.
const never = time.Duration(math.MaxInt64)

// A merge of one model.
type merge struct {
	model int
	asked time.Duration // when it was due, or started by its training
	began time.Duration // when all its machines worked together
	ended time.Duration // when the full model was there
}

// A step is a change of what a model's merge holds.
type step struct {
	at      time.Duration
	model   int
	held    int  // machines
	working bool // all of them, on the merge
}

// A result is what the experiment asks of a record. But for deadlocks, it is about the time after the warm-up.
type result struct {
	strategy  strategy
	pool      int           // machines
	merged    int           // merges that ended
	late      int           // models whose full model was ever older than experiment.late
	oldest    time.Duration // greatest age of any full model
	deadlocks int
	held      float64 // machine-hours
	worked    float64 // machine-hours
	waitP50   time.Duration
	waitP99   time.Duration
	commit    string // that was measured
}

// result evaluates the record of one pool.
func (e experiment) result(s strategy, pool int, r record) result {
	out := result{strategy: s, pool: pool, deadlocks: e.deadlocks(r)}
	for model := range e.models {
		age := e.oldest(r, model)
		out.oldest = max(out.oldest, age)
		if age > e.late {
			out.late++
		}
	}
	for _, m := range r.merges {
		if m.ended > e.warmUp && m.ended <= e.horizon {
			out.merged++
		}
	}
	out.held, out.worked = e.machineHours(r)
	waits := e.waits(r)
	out.waitP50, out.waitP99 = quantile(waits, 0.50), quantile(waits, 0.99)
	return out
}

// oldest is the greatest age that a model's full model reached after the warm-up.
func (e experiment) oldest(r record, model int) time.Duration {
	made := []time.Duration{-e.firstAge()}
	for _, m := range r.merges {
		if m.model == model && m.ended <= e.horizon {
			made = append(made, m.ended)
		}
	}
	slices.Sort(made)
	made = append(made, e.horizon)
	var oldest time.Duration
	for i, until := range made[1:] {
		if until >= e.warmUp {
			oldest = max(oldest, until-made[i])
		}
	}
	return oldest
}

// waits are those that ended after the warm-up, and those that had not ended at the horizon, as long as they were then; in order.
func (e experiment) waits(r record) []time.Duration {
	var waits []time.Duration
	for _, m := range r.merges {
		if until := min(m.began, e.horizon); until > e.warmUp && m.asked < e.horizon {
			waits = append(waits, until-m.asked)
		}
	}
	slices.Sort(waits)
	return waits
}

// quantile is the nearest rank of sorted values; 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// machineHours are those held by merges after the warm-up, and those of them in which merges worked.
func (e experiment) machineHours(r record) (held, worked float64) {
	e.sweep(r, func(from, until time.Duration, now map[int]step) {
		from, until = max(from, e.warmUp), min(until, e.horizon)
		if until <= from {
			return
		}
		hours := (until - from).Hours()
		for _, s := range now {
			held += float64(s.held) * hours
			if s.working {
				worked += float64(s.held) * hours
			}
		}
	})
	return held, worked
}

// deadlocks counts how often merges held machines for experiment.stuck and longer while none of the pool worked: none of them had
// all that it needs, and what each needed was held by the others.
func (e experiment) deadlocks(r record) int {
	count, since := 0, never
	e.sweep(r, func(from, until time.Duration, now map[int]step) {
		holding, working := false, false
		for _, s := range now {
			holding = holding || s.held > 0
			working = working || s.working
		}
		if !holding || working {
			since = never
			return
		}
		if since == never {
			since = from
		}
		if before := from - since; before < e.stuck && min(until, e.horizon)-since >= e.stuck {
			count++
		}
	})
	return count
}

// sweep calls f for each span in which nothing changes, with the last step of each model.
func (e experiment) sweep(r record, f func(from, until time.Duration, now map[int]step)) {
	steps := slices.Clone(r.steps)
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	now := map[int]step{}
	var from time.Duration
	for _, s := range steps {
		if s.at > from {
			f(from, s.at, now)
			from = s.at
		}
		now[s.model] = s
	}
	if from < e.horizon {
		f(from, e.horizon, now)
	}
}

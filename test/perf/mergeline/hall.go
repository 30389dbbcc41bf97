package main

import (
	"slices"
	"time"
)

const (
	// placing is how long Volcano takes to place a gang for which there is room, and starting how long its pods take to run.
	placing, starting = time.Second, 20 * time.Second
	// What happens before warmUp is the start; what happens from then to the horizon is counted apart.
	warmUp, horizon = 48 * time.Hour, 198 * time.Hour
	// stuck is how long merges may wait while none runs.
	stuck = time.Hour
)

var morning = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// hall is the machines of a pool, the merges that hold them, and the record of it. Who starts when is decided elsewhere.
type hall struct {
	workload

	now     time.Time
	free    int32
	running []*run
	// Of each model: the time of its newest full model, and how many merges began.
	full  []time.Time
	begun []int
	*record
}

// run is a merge that holds machines.
type run struct {
	model, number int
	due, placed   time.Time
	ends          time.Time
}

func newHall(w workload, machines int32) hall {
	h := hall{workload: w, now: morning, free: machines, begun: make([]int, len(w.models)), record: newRecord(len(w.models))}
	for i := range w.models {
		h.full = append(h.full, morning.Add(-w.models[i].firstAge))
	}
	return h
}

// dueAt is when a model's next merge is due.
func (h *hall) dueAt(model int) time.Time { return h.full[model].Add(h.models[model].interval) }

// start gives a model's merge its machines, and returns it.
func (h *hall) start(model int) *run {
	r := &run{model: model, number: h.begun[model], due: h.dueAt(model), placed: h.now}
	r.ends = h.now.Add(starting + h.duration(model, r.number))
	h.begun[model]++
	h.free -= h.models[model].machines
	if h.free < 0 {
		panic("more machines are held than there are") // A defect of the bench itself: no result of it would mean anything.
	}
	h.running = append(h.running, r)
	h.noteWait(h.now, h.now.Sub(r.due))
	h.all = append(h.all, *r)
	return r
}

// finish ends the merges whose time is over, and returns them.
func (h *hall) finish() []*run {
	var over []*run
	h.running = slices.DeleteFunc(h.running, func(r *run) bool {
		if r.ends.After(h.now) {
			return false
		}
		h.free += h.models[r.model].machines
		h.noteFull(h.now, &h.models[r.model], r.model, h.now.Sub(h.full[r.model]))
		h.full[r.model] = h.now
		over = append(over, r)
		return true
	})
	return over
}

// pass lets time pass until then, while these models wait for machines.
func (h *hall) pass(then time.Time, waiting []int) {
	fits := slices.ContainsFunc(waiting, func(model int) bool { return h.models[model].machines <= h.free })
	h.noteSpan(h.now, then, h.free, fits, len(waiting) > 0 && len(h.running) == 0)
	h.now = then
}

// nextEnd is when the next merge ends; at the horizon if none does before.
func (h *hall) nextEnd() time.Time {
	next := h.over()
	for _, r := range h.running {
		if r.ends.Before(next) {
			next = r.ends
		}
	}
	return next
}

// close counts the ages that full models have at the horizon.
func (h *hall) close() {
	for i := range h.models {
		h.noteAge(h.now, &h.models[i], i, h.now.Sub(h.full[i]))
	}
}

// roomAt is when so many machines will be free if nobody starts: what only the bench knows.
func (h *hall) roomAt(machines int32) time.Time {
	ends := slices.SortedFunc(slices.Values(h.running), func(a, b *run) int { return a.ends.Compare(b.ends) })
	free, at := h.free, h.now
	for _, r := range ends {
		if free >= machines {
			break
		}
		free, at = free+h.models[r.model].machines, r.ends
	}
	return at
}

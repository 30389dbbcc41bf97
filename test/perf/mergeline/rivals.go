package main

import (
	"cmp"
	"slices"
	"time"
)

// The rivals start each model's merge when it is due, as a gang of its own that waits in the queue of a scheduler. A gang has
// all its machines or none.
//
// As their makers see them: Volcano, and Kueue's BestEffortFIFO, try each gang in the order of age and place what fits; first fit
// in the order of lateness is what a team may build that knows the models.

// order chooses who is tried first. One that does not fit holds up none.
type order struct {
	before func(h *hall, a, b int) int
}

var (
	anyFIFO  = order{oldestFirst}
	firstFit = order{func(h *hall, a, b int) int {
		return cmp.Or(cmp.Compare(h.lateness(b), h.lateness(a)), cmp.Compare(a, b))
	}}
)

func oldestFirst(h *hall, a, b int) int {
	return cmp.Or(h.dueAt(a).Compare(h.dueAt(b)), cmp.Compare(a, b))
}

// lateness is the age of a full model in intervals.
func (h *hall) lateness(model int) float64 {
	return h.now.Sub(h.full[model]).Seconds() / h.models[model].interval.Seconds()
}

// play runs a rival to the horizon.
func (o order) play(w workload, machines int32) *record {
	h := newHall(w, machines)
	for h.now.Before(morning.Add(horizon)) {
		h.finish()
		var waiting []int
		next := h.nextEnd()
		for i := range h.models {
			switch due := h.dueAt(i).Add(placing); {
			case slices.ContainsFunc(h.running, func(r *run) bool { return r.model == i }):
			case due.After(h.now):
				next = earlier(next, due)
			default:
				waiting = append(waiting, i)
			}
		}
		slices.SortFunc(waiting, func(a, b int) int { return o.before(&h, a, b) })
		var rest []int
		for _, i := range waiting {
			if h.models[i].machines <= h.free {
				next = earlier(next, h.start(i).ends)
			} else {
				rest = append(rest, i)
			}
		}
		h.pass(next, rest)
	}
	h.close()
	return h.record
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

package main

import "github.com/tideline-io/tideline/internal/platform/config"

// observed is what there is to know about a task after a week, and all that a contestant is told.
type observed struct {
	tier      config.Tier
	requested amounts
	runs      []seen
}

// seen is what metrics have of a day's run, by sample. A container does not use more than its limit: a sample at which it needs
// more CPU is throttled, and one at which it needs more memory has it killed. It begins again at once, and its need goes on as it
// would have.
type seen struct {
	cpu       []float64
	throttled []bool
	memory    []float64
	killed    []bool
}

// observe is the history of a task as metrics have it.
func (t task) observe() observed {
	o := observed{tier: t.tier, requested: t.requested}
	for _, r := range t.history() {
		s := seen{
			make([]float64, len(r.cpu)), make([]bool, len(r.cpu)), make([]float64, len(r.memory)), make([]bool, len(r.memory)),
		}
		over := false
		for i := range r.cpu {
			s.cpu[i], s.throttled[i] = min(r.cpu[i], t.requested.cpu), r.cpu[i] > t.requested.cpu
			s.memory[i] = min(r.memory[i], t.requested.memory)
			// A stretch of time above the limit is one kill.
			s.killed[i] = r.memory[i] > t.requested.memory && !over
			over = r.memory[i] > t.requested.memory
		}
		o.runs = append(o.runs, s)
	}
	return o
}

// kills counts how often the container was killed.
func (s seen) kills() int {
	n := 0
	for _, killed := range s.killed {
		if killed {
			n++
		}
	}
	return n
}

// wasKilled tells whether the container ever was.
func (o observed) wasKilled() bool {
	for _, r := range o.runs {
		if r.kills() > 0 {
			return true
		}
	}
	return false
}

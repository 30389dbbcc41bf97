// Package lifetime says how long gangs last, learnt from those that have ended. It is pure.
//
//	how long it still lasts, given that it has lasted for t:
//	  drawn from those of its task that lasted longer than t, less t
//	  if they are too few: of its queue; if these are: of all
//	  if these are too few as well: with equal odds longer or shorter than t again, t being a minute at least
//
// The last is the law of Lindy, P(rest > x) = t / (t + x): what has lasted longer lasts longer. It is what is left to say where
// nothing is known, and its tail is long.
package lifetime

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// enough is how many gangs must have lasted longer for one of them to be drawn.
	enough = 5
	// mostKept bounds how many lifetimes of one task, of one queue and of all are kept: the latest.
	mostKept = 500
	// shortest is the least time that Lindy's law starts from, and longest bounds what it gives.
	shortest, longest = time.Minute, 90 * 24 * time.Hour
)

// Ended is a gang that has ended.
type Ended struct {
	// Namespace and Task say what it was.
	Namespace, Task string
	// Queue that it was in.
	Queue string
	// At is when it ended, and Lasted for how long it ran.
	At     time.Time
	Lasted time.Duration
}

type task struct{ namespace, name string }

// History is how long gangs have lasted.
type History struct {
	byTask  map[task][]time.Duration
	byQueue map[string][]time.Duration
	all     []time.Duration
}

// NewHistory learns from gangs that have ended, in any order.
func NewHistory(ended []Ended) *History {
	h := &History{byTask: map[task][]time.Duration{}, byQueue: map[string][]time.Duration{}}
	latest := slices.Clone(ended)
	slices.SortStableFunc(latest, func(a, b Ended) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Lasted, b.Lasted)) })
	for i := range latest {
		e := &latest[i]
		of := task{e.Namespace, e.Task}
		h.byTask[of] = keep(h.byTask[of], e.Lasted)
		h.byQueue[e.Queue] = keep(h.byQueue[e.Queue], e.Lasted)
		h.all = keep(h.all, e.Lasted)
	}
	for _, some := range h.byTask {
		slices.Sort(some)
	}
	for _, some := range h.byQueue {
		slices.Sort(some)
	}
	slices.Sort(h.all)
	return h
}

func keep(some []time.Duration, one time.Duration) []time.Duration {
	if len(some) == mostKept {
		return some
	}
	return append(some, one)
}

// Source is what a drawing is from.
type Source string

// Where lifetimes are drawn from, the best first.
const (
	FromTask  Source = "ended runs of the same task"
	FromQueue Source = "ended jobs of the same queue"
	FromAll   Source = "ended jobs of all queues"
	FromAge   Source = "their age"
)

// DrawFor says how much longer gangs of a task in a queue last that have lasted for ran, 0 for one that has not begun, and where
// that is from.
func (h *History) DrawFor(
	namespace, taskName, queue string, ran time.Duration,
) (draw func(*rand.Rand) time.Duration, from Source) {
	for _, s := range []struct {
		from Source
		some []time.Duration
	}{{FromTask, h.byTask[task{namespace, taskName}]}, {FromQueue, h.byQueue[queue]}, {FromAll, h.all}} {
		// Only strictly longer ones: the answer is never 0.
		first, _ := slices.BinarySearch(s.some, ran+1)
		if longer := s.some[first:]; len(longer) >= enough {
			return func(r *rand.Rand) time.Duration { return longer[r.IntN(len(longer))] - ran }, s.from
		}
	}
	t := max(ran, shortest)
	return func(r *rand.Rand) time.Duration {
		odds := r.Float64()
		// P(rest > x) = t / (t + x), solved for x.
		return time.Duration(min(float64(t)*odds/(1-odds), float64(longest)))
	}, FromAge
}

// Package lifetime says how long gangs last, learnt from those that have ended. It is pure.
//
//	how long it still lasts, given that it has lasted for t:
//	  drawn from those of its task that lasted longer than t, less t
//	  if they are too few: of its queue; if these are: of all
//	  if these are too few as well: with equal odds longer or shorter than t again, t being a minute at least
//
// The last is the law of Lindy, P(rest > x) = t / (t + x): what has lasted longer lasts longer. It is what is left to say where
// nothing is known, and its tail is long.
//
// Gangs that are submitted together are alike: runs of a sweep last about as long as each other. So in one future the gangs that
// are drawn from one task or queue last long or short together (alike.go). What is drawn of all queues, or by age, is drawn for
// each gang by itself.
package lifetime

import (
	"cmp"
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
	byTask  map[task]*pool
	byQueue map[string]*pool
	all     *pool
}

// NewHistory learns from gangs that have ended, in any order.
func NewHistory(ended []Ended) *History {
	h := &History{byTask: map[task]*pool{}, byQueue: map[string]*pool{}, all: &pool{}}
	latest := slices.Clone(ended)
	slices.SortStableFunc(latest, func(a, b Ended) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Lasted, b.Lasted)) })
	for i := range latest {
		e := &latest[i]
		one := run{e.At.Add(-e.Lasted), e.Lasted}
		keepIn(h.byTask, task{e.Namespace, e.Task}, one)
		keepIn(h.byQueue, e.Queue, one)
		h.all.keep(one)
	}
	h.learnAlike()
	return h
}

func keepIn[K comparable](pools map[K]*pool, key K, one run) {
	if pools[key] == nil {
		pools[key] = &pool{}
	}
	pools[key].keep(one)
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

// Draw says how much longer a gang lasts in a future.
type Draw func(*Future) time.Duration

// DrawFor says how much longer gangs of a task in a queue last that have lasted for ran, 0 for one that has not begun, and where
// that is from.
func (h *History) DrawFor(namespace, taskName, queue string, ran time.Duration) (draw Draw, from Source) {
	for _, s := range []struct {
		from Source
		pool *pool
	}{{FromTask, h.byTask[task{namespace, taskName}]}, {FromQueue, h.byQueue[queue]}, {FromAll, h.all}} {
		if s.pool == nil {
			continue
		}
		// Only strictly longer ones: the answer is never 0.
		first, _ := slices.BinarySearch(s.pool.lasted, ran+1)
		if longer := s.pool.lasted[first:]; len(longer) >= enough {
			return func(f *Future) time.Duration {
				at := int(f.oddsOf(s.pool) * float64(len(longer)))
				return longer[min(at, len(longer)-1)] - ran
			}, s.from
		}
	}
	t := max(ran, shortest)
	return func(f *Future) time.Duration {
		odds := f.random.Float64()
		// P(rest > x) = t / (t + x), solved for x.
		return time.Duration(min(float64(t)*odds/(1-odds), float64(longest)))
	}, FromAge
}

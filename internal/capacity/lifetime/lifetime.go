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
// Gangs of one task or queue that came together are alike: runs of a sweep last about as long as each other. So in one future
// they last long or short together (alike.go), and those of a sweep that have run or ended say how long the others will last
// (burst.go). What is drawn of all queues, or by age, is drawn for each gang by itself.
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

// Gang says what a gang is.
type Gang struct {
	Namespace, Task string
	// Queue that it is in.
	Queue string
	// Came is when it was created.
	Came time.Time
}

// Ended is a gang that has ended.
type Ended struct {
	Gang

	// At is when it ended, and Lasted for how long it ran.
	At     time.Time
	Lasted time.Duration
}

// Live is a gang that runs or waits.
type Live struct {
	Gang

	// Ran is for how long it has run; 0 for one that has not begun.
	Ran time.Duration
}

type task struct{ namespace, name string }

// History is how long gangs have lasted.
type History struct {
	byTask  pools[task]
	byQueue pools[string]
	all     *pool
}

// NewHistory learns from gangs that have ended, and from those that run how long they lasted at least; each in any order.
func NewHistory(ended []Ended, live []Live) *History {
	h := &History{byTask: pools[task]{}, byQueue: pools[string]{}, all: &pool{}}
	latest := slices.Clone(ended)
	slices.SortStableFunc(latest, func(a, b Ended) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Lasted, b.Lasted), a.Came.Compare(b.Came))
	})
	for i := range latest {
		e := &latest[i]
		one := run{came: e.Came, lasted: e.Lasted, ended: true}
		h.byTask.of(e.taskOf()).keep(one)
		h.byQueue.of(e.Queue).keep(one)
		h.all.keep(one)
	}
	for i := range live {
		l := &live[i]
		one := run{came: l.Came, lasted: l.Ran}
		for _, p := range []*pool{h.byTask[l.taskOf()], h.byQueue[l.Queue]} {
			if p != nil {
				p.live = append(p.live, one)
			}
		}
	}
	h.byTask.learn()
	h.byQueue.learn()
	h.all.sort()
	return h
}

func (g *Gang) taskOf() task { return task{g.Namespace, g.Task} }

// pools are by task or queue.
type pools[K comparable] map[K]*pool

func (p pools[K]) of(key K) *pool {
	if p[key] == nil {
		p[key] = &pool{}
	}
	return p[key]
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

// DrawFor says how much longer a gang lasts, which must be one of those that NewHistory was told of, and where that is from.
func (h *History) DrawFor(l Live) (draw Draw, from Source) {
	for _, s := range []struct {
		from Source
		pool *pool
	}{{FromTask, h.byTask[l.taskOf()]}, {FromQueue, h.byQueue[l.Queue]}, {FromAll, h.all}} {
		if s.pool == nil {
			continue
		}
		lasted := s.pool.lasted
		// Only strictly longer ones: the answer is never 0.
		first, _ := slices.BinarySearch(lasted, l.Ran+1)
		if len(lasted)-first < enough {
			continue
		}
		of, shorter := s.pool.burstOf(l.Came), float64(first)/float64(len(lasted))
		return func(f *Future) time.Duration {
			at := int(f.partOf(of, shorter) * float64(len(lasted)))
			return lasted[min(max(at, first), len(lasted)-1)] - l.Ran
		}, s.from
	}
	t := max(l.Ran, shortest)
	return func(f *Future) time.Duration {
		odds := f.random.Float64()
		// P(rest > x) = t / (t + x), solved for x.
		return time.Duration(min(float64(t)*odds/(1-odds), float64(longest)))
	}, FromAge
}

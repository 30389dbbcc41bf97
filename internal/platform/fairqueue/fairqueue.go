// Package fairqueue has controllers take turns between namespaces, so that a namespace with thousands of objects delays those of
// others by one object of its own, and not by all of them. Within a namespace what is merely listed waits behind what changed.
package fairqueue

import (
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// leftToOthers is the part of a controller's workers that [MostOfOne] leaves to other namespaces: one in so many.
const leftToOthers = 4

// MostOfOne is how many of a controller's workers one namespace should have at a time where each may be held up for long, for
// example by a server that does not answer: three quarters, at least 1, and one fewer than there are if there are two or more.
func MostOfOne(workers int) int {
	if workers < 2 {
		return 1
	}
	return workers - max(workers/leftToOthers, 1)
}

// NewQueue makes the queue of a controller, for its option of that name. Of each namespace at most so many requests are under
// way at a time, 1 or more. It has two priorities: below 0, and all others.
func NewQueue(
	name string, most int, limiter workqueue.TypedRateLimiter[reconcile.Request],
) priorityqueue.PriorityQueue[reconcile.Request] {
	fair := newQueue(max(most, 1))
	inner := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: fair})
	ranked := rankedQueue{inner, fair}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
		Name: name, Queue: ranked,
	})
	return requests{workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name, DelayingQueue: delaying,
	}), ranked}
}

// requests are the queue as controllers see it.
type requests struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	ranked rankedQueue
}

// AddWithOpts adds requests: with a priority below 0 and at once, behind all others of their namespaces.
func (r requests) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	for _, item := range items {
		switch {
		case o.RateLimited:
			r.AddRateLimited(item)
		case o.After > 0:
			r.AddAfter(item, o.After)
		case o.Priority != nil && *o.Priority < 0:
			r.ranked.addLast(item)
		default:
			r.Add(item)
		}
	}
}

// GetWithPriority is Get. Whoever asks for a request again is not merely listed.
func (r requests) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	item, shutdown = r.Get()
	return item, 0, shutdown
}

// rank is where a request waits among those of its namespace.
type rank int

const (
	waitsNot rank = iota
	waitsLast
	waitsFirst
)

// line is the requests of a namespace that wait.
type line struct {
	// first and last are in the order in which they came. last may name some that wait no longer, or first since.
	first, last []reconcile.Request
	// waiting is how many wait, and lasting how many of them last.
	waiting, lasting int
	// handed is how many were handed out since one of those that wait last was.
	handed int
}

// mostBefore is how many requests of a namespace are handed out before one that waits last, so that none waits for ever.
const mostBefore = 3

// next takes the next request out of the line, given where each request waits.
func (l *line) next(ranks map[reconcile.Request]rank) (item reconcile.Request) {
	l.waiting--
	if len(l.first) > 0 && (l.lasting == 0 || l.handed < mostBefore) {
		l.handed++
		item, l.first = l.first[0], l.first[1:]
		return item
	}
	for ranks[l.last[0]] != waitsLast {
		l.last = l.last[1:]
	}
	item, l.last = l.last[0], l.last[1:]
	l.handed = 0
	l.noteFewerLast()
	return item
}

// noteFewerLast notes that one fewer waits last.
func (l *line) noteFewerLast() {
	if l.lasting--; l.lasting == 0 {
		l.last = nil
	}
}

// queue hands out first what is of the namespaces with the fewest requests under way.
type queue struct {
	// most is how many requests of a namespace are handed out at a time.
	most int

	mu sync.Mutex
	// lines are the namespaces' that have requests that wait, and turns these namespaces, the next first.
	lines map[string]*line
	turns []string
	// ranks are where requests wait. added are the ranks with which those were added that do not wait yet.
	ranks, added map[reconcile.Request]rank
	// out are how many requests of a namespace are handed out.
	out map[string]int
	// ready is how many requests may be handed out now. It is kept, because it is asked for at each request, and there may be
	// thousands of namespaces.
	ready int
}

func newQueue(most int) *queue {
	return &queue{
		most: most, lines: map[string]*line{}, ranks: map[reconcile.Request]rank{}, added: map[reconcile.Request]rank{},
		out: map[string]int{},
	}
}

// Touch is called for what waits already; whoever adds has noted that.
func (*queue) Touch(reconcile.Request) {}

// note notes with which rank a request is about to be added. The better one counts, where it is added several times.
func (q *queue) note(item reconcile.Request, as rank) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch was := q.ranks[item]; {
	case was == waitsNot:
		q.added[item] = max(q.added[item], as)
	case was < as:
		l := q.lines[item.Namespace]
		l.first = append(l.first, item)
		l.noteFewerLast()
		q.ranks[item] = as
	}
}

// Push adds a request that does not wait yet.
func (q *queue) Push(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.recount(item.Namespace, q.readyOf(item.Namespace))
	l := q.lines[item.Namespace]
	if l == nil {
		l = &line{}
		q.lines[item.Namespace] = l
		q.turns = append(q.turns, item.Namespace)
	}
	l.waiting++
	if q.ranks[item] = waitsFirst; q.added[item] == waitsLast {
		q.ranks[item] = waitsLast
		l.last = append(l.last, item)
		l.lasting++
	} else {
		l.first = append(l.first, item)
	}
	delete(q.added, item)
}

// Len is how many requests may be handed out now.
func (q *queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready
}

// readyOf is how many requests of a namespace may be handed out now.
func (q *queue) readyOf(namespace string) int {
	l := q.lines[namespace]
	if l == nil {
		return 0
	}
	return min(l.waiting, max(q.most-q.out[namespace], 0))
}

// recount brings ready up to date after a change of a namespace that had so many before.
func (q *queue) recount(namespace string, before int) { q.ready += q.readyOf(namespace) - before }

// Pop hands out the next request: of the namespaces that have the fewest out, that whose turn it is. It is called while there is
// one, and followed by release once that is done.
func (q *queue) Pop() (item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn, fewest := -1, q.most
	for i, namespace := range q.turns {
		if q.out[namespace] < fewest {
			turn, fewest = i, q.out[namespace]
		}
		if fewest == 0 {
			break
		}
	}
	if turn < 0 {
		return item
	}
	namespace := q.turns[turn]
	defer q.recount(namespace, q.readyOf(namespace))
	l := q.lines[namespace]
	item = l.next(q.ranks)
	delete(q.ranks, item)
	q.turns = slices.Delete(q.turns, turn, turn+1)
	if l.waiting > 0 {
		q.turns = append(q.turns, namespace)
	} else {
		delete(q.lines, namespace)
	}
	q.out[namespace]++
	return item
}

func (q *queue) release(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.recount(item.Namespace, q.readyOf(item.Namespace))
	if q.out[item.Namespace]--; q.out[item.Namespace] <= 0 {
		delete(q.out, item.Namespace)
	}
}

// rankedQueue tells the queue how requests are added, and what is done. Whoever is done asks for more right away, so that what
// may be handed out then is.
type rankedQueue struct {
	workqueue.TypedInterface[reconcile.Request]

	queue *queue
}

// Add adds a request, or has one that waits last wait first.
func (r rankedQueue) Add(item reconcile.Request) {
	r.queue.note(item, waitsFirst)
	r.TypedInterface.Add(item)
}

// addLast adds a request that does not wait yet behind all others of its namespace.
func (r rankedQueue) addLast(item reconcile.Request) {
	r.queue.note(item, waitsLast)
	r.TypedInterface.Add(item)
}

// Done marks a request as done.
func (r rankedQueue) Done(item reconcile.Request) {
	r.queue.release(item)
	r.TypedInterface.Done(item)
}

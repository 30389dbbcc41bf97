// Package fairqueue has controllers take turns between namespaces, so that a namespace with thousands of objects delays those of
// others by one object of its own, and not by all of them.
package fairqueue

import (
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
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
// way at a time, 1 or more.
func NewQueue(
	name string, most int, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	fair := &queue{most: max(most, 1), waiting: map[string][]reconcile.Request{}, out: map[string]int{}}
	inner := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: fair})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
		Name: name, Queue: releasing{inner, fair},
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name, DelayingQueue: delaying,
	})
}

// queue hands out first what is of the namespaces with the fewest requests under way.
type queue struct {
	// most is how many requests of a namespace are handed out at a time.
	most int

	mu sync.Mutex
	// waiting are the requests of a namespace in the order in which they came, and turns the namespaces that have any, the next
	// first.
	waiting map[string][]reconcile.Request
	turns   []string
	// out are how many requests of a namespace are handed out.
	out map[string]int
	// ready is how many requests may be handed out now. It is kept, because it is asked for at each request, and there may be
	// thousands of namespaces.
	ready int
}

// Touch is called for what waits already, which keeps its place.
func (*queue) Touch(reconcile.Request) {}

// Push adds a request that does not wait yet.
func (q *queue) Push(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.recount(item.Namespace, q.readyOf(item.Namespace))
	if len(q.waiting[item.Namespace]) == 0 {
		q.turns = append(q.turns, item.Namespace)
	}
	q.waiting[item.Namespace] = append(q.waiting[item.Namespace], item)
}

// Len is how many requests may be handed out now.
func (q *queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready
}

// readyOf is how many requests of a namespace may be handed out now.
func (q *queue) readyOf(namespace string) int {
	return min(len(q.waiting[namespace]), max(q.most-q.out[namespace], 0))
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
	items := q.waiting[namespace]
	q.turns = slices.Delete(q.turns, turn, turn+1)
	if len(items) > 1 {
		q.waiting[namespace], q.turns = items[1:], append(q.turns, namespace)
	} else {
		delete(q.waiting, namespace)
	}
	q.out[namespace]++
	return items[0]
}

func (q *queue) release(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.recount(item.Namespace, q.readyOf(item.Namespace))
	if q.out[item.Namespace]--; q.out[item.Namespace] <= 0 {
		delete(q.out, item.Namespace)
	}
}

// releasing tells the queue what is done. Whoever is done asks for more right away, so that what may be handed out then is.
type releasing struct {
	workqueue.TypedInterface[reconcile.Request]
	queue *queue
}

// Done marks a request as done.
func (r releasing) Done(item reconcile.Request) {
	r.queue.release(item)
	r.TypedInterface.Done(item)
}

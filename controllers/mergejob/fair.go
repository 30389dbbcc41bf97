package mergejob

import (
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// othersShare is by which number the readers of stores are divided to get those that one namespace leaves to others.
const othersShare = 4

// fairQueue hands out first what is of namespaces of which the least is being done, so that a namespace with thousands of merges
// delays the others by no more than a reading. And it leaves each namespace so many readers at a time that some are left: one
// whose stores do not answer would otherwise have all of them wait for half a minute.
type fairQueue struct {
	// Queue is only for what is the same in all queues: what waits already keeps its place when it is added again.
	workqueue.Queue[reconcile.Request]
	// most is how many requests of a namespace are handed out at a time, at least 1.
	most int

	mu sync.Mutex
	// waiting are the requests of a namespace in the order in which they came, and turns the namespaces that have any, the next
	// first.
	waiting map[string][]reconcile.Request
	turns   []string
	// out are how many requests of a namespace are handed out.
	out map[string]int
}

// newFairQueue makes one for so many readers.
func newFairQueue(readers int) *fairQueue {
	most := readers
	if readers > 1 {
		most -= max(readers/othersShare, 1)
	}
	return &fairQueue{
		Queue: workqueue.DefaultQueue[reconcile.Request](), most: most,
		waiting: map[string][]reconcile.Request{}, out: map[string]int{},
	}
}

// Push adds a request that does not wait yet.
func (q *fairQueue) Push(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting[item.Namespace]) == 0 {
		q.turns = append(q.turns, item.Namespace)
	}
	q.waiting[item.Namespace] = append(q.waiting[item.Namespace], item)
}

// Len is how many requests may be handed out now.
func (q *fairQueue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for namespace, items := range q.waiting {
		n += min(len(items), max(q.most-q.out[namespace], 0))
	}
	return n
}

// Pop hands out the next request: of the namespaces that have the fewest out, the one that has waited longest. It is called while
// there is one, and followed by release once that is done.
func (q *fairQueue) Pop() (item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn, fewest := -1, q.most
	for i, namespace := range q.turns {
		if q.out[namespace] < fewest {
			turn, fewest = i, q.out[namespace]
		}
	}
	if turn < 0 {
		return item
	}
	namespace := q.turns[turn]
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

func (q *fairQueue) release(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.out[item.Namespace]--; q.out[item.Namespace] <= 0 {
		delete(q.out, item.Namespace)
	}
}

// releasing tells a fair queue what is done. Whoever is done asks for more right away, so that what may be handed out then is.
type releasing struct {
	workqueue.TypedInterface[reconcile.Request]
	fair *fairQueue
}

// Done marks a request as done.
func (r releasing) Done(item reconcile.Request) {
	r.fair.release(item)
	r.TypedInterface.Done(item)
}

// newFairWorkqueue makes the queue of a controller with so many readers.
func newFairWorkqueue(
	name string, readers int, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	fair := newFairQueue(readers)
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: fair})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
		Name: name, Queue: releasing{queue, fair},
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name, DelayingQueue: delaying,
	})
}

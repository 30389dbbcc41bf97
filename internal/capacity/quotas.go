package capacity

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// quotas are what Volcano's Queues may take, and what their pods hold.
type quotas struct {
	queues map[string]Queue
	// total is what all nodes have. guaranteed is what queues have reserved of it.
	total, guaranteed Amounts
	// outgoing is what leaving pods hold of each queue's limit; nil if no pod is leaving.
	outgoing map[string]Amounts
}

func newQuotas(queues []Queue) quotas {
	qs := quotas{queues: make(map[string]Queue, len(queues)), total: Amounts{}, guaranteed: Amounts{}}
	for _, q := range queues {
		qs.queues[q.Name] = q
		for name, amount := range q.Guarantee {
			qs.guaranteed[name] += amount
		}
	}
	return qs
}

// addOutgoing counts a leaving pod for its queue.
func (qs *quotas) addOutgoing(p *Pod) {
	if qs.outgoing == nil {
		qs.outgoing = map[string]Amounts{}
	}
	if qs.outgoing[p.Queue] == nil {
		qs.outgoing[p.Queue] = Amounts{}
	}
	for name, amount := range p.Requests {
		qs.outgoing[p.Queue][name] += amount
	}
}

// headroom is what the gang's queue may still take of each resource that the gang asks for, and how many workers that is. It is
// negative for a resource if the queue has more of it than it may. As in Volcano's capacity plugin,
//
//	limit = min(capability, total - guarantees of all queues + the queue's own guarantee)
//
// A queue that does not exist takes nothing.
func (qs *quotas) headroom(g *Gang) (Amounts, int32) {
	q, exists := qs.queues[g.Queue]
	left, workers := Amounts{}, int64(math.MaxInt32)
	if !exists {
		workers = 0
	}
	for name, amount := range g.requestsOf(g.Workers) {
		if amount <= 0 {
			continue
		}
		left[name] = qs.limitOf(&q, name) - q.Allocated[name]
		workers = min(workers, g.workersWithin(name, max(0, left[name])))
	}
	return left, int32(workers)
}

// limitOf is how much of a resource a queue may hold.
func (qs *quotas) limitOf(q *Queue, name corev1.ResourceName) int64 {
	limit := qs.total[name] - qs.guaranteed[name] + q.Guarantee[name]
	if capability, limited := q.Capability[name]; limited {
		limit = min(limit, capability)
	}
	return limit
}

// withinLimit is true if the limit of the gang's queue allows the gang once the crowd and the leaving pods are gone.
func (qs *quotas) withinLimit(g *Gang, c *crowd) bool {
	left, workers := qs.headroom(g)
	if workers >= g.Workers {
		return true
	}
	asks, books, leaving := g.requestsOf(g.Workers), c.books[g.Queue], qs.outgoing[g.Queue]
	for name, amount := range left {
		if amount+books[name]+leaving[name] < asks[name] {
			return false
		}
	}
	_, exists := qs.queues[g.Queue] // headroom gives 0 workers for a queue that does not exist, however much is left.
	return exists
}

// allocate adds n workers of the gang to its queue's allocation.
func (qs *quotas) allocate(g *Gang, n int32) { qs.addAllocated(g.Queue, g.requestsOf(n)) }

// addAllocated adds amounts to a queue's allocation.
func (qs *quotas) addAllocated(queue string, held Amounts) {
	q := qs.queues[queue]
	q.Allocated = maps.Clone(q.Allocated)
	if q.Allocated == nil {
		q.Allocated = Amounts{}
	}
	for name, amount := range held {
		q.Allocated[name] += amount
	}
	qs.queues[queue] = q
}

// deallocate takes amounts out of a queue's allocation; a queue that does not exist has none.
func (qs *quotas) deallocate(queue string, held Amounts) {
	q, known := qs.queues[queue]
	if !known {
		return
	}
	q.Allocated = maps.Clone(q.Allocated)
	for name, amount := range held {
		if q.Allocated != nil {
			q.Allocated[name] -= amount
		}
	}
	qs.queues[queue] = q
}

// UnderShare is true if the gang's queue has a share of what the gang asks for, and would hold no more than that share with the
// gang.
func (qs *quotas) UnderShare(g *Gang) bool {
	q, some := qs.queues[g.Queue], false
	for name, amount := range g.requestsOf(g.Workers) {
		if share, shared := q.Deserved[name]; shared {
			some = true
			if qs.heldBy(&q, name)+amount > share {
				return false
			}
		}
	}
	// A queue without a share of what the gang asks for reclaims nothing, as in Volcano's capacity plugin.
	return some
}

// heldBy is what the queue's pods hold of a resource once leaving pods are gone.
func (qs *quotas) heldBy(q *Queue, name corev1.ResourceName) int64 {
	return q.Allocated[name] - qs.outgoing[q.Name][name]
}

// takesOf tells which surplus pods the gang may take: of its own queue always, and of another queue if that has more than its
// share while the gang's own queue stays within its share with the gang.
func (qs *quotas) takesOf(g *Gang) func(*Pod) bool {
	under, names := qs.UnderShare(g), slices.Collect(g.resourceNames())
	return func(p *Pod) bool {
		if p.Queue == g.Queue {
			return true
		}
		if !under {
			return false
		}
		q := qs.queues[p.Queue]
		// From a queue without a share others may always reclaim, as in Volcano's capacity plugin.
		return !q.Protected && slices.ContainsFunc(names, func(name corev1.ResourceName) bool {
			share, shared := q.Deserved[name]
			return p.Requests[name] > 0 && (len(q.Deserved) == 0 || (shared && qs.heldBy(&q, name) > share))
		})
	}
}

// keepsShare is true if the pod's queue keeps its share when this pod leaves after those before it. over is what each queue has
// beyond its share; a pod that may leave is subtracted from it.
func (qs *quotas) keepsShare(over map[string]Amounts, g *Gang, p *Pod) bool {
	q := qs.queues[p.Queue]
	if over[p.Queue] == nil {
		over[p.Queue] = Amounts{}
		for name, share := range q.Deserved {
			over[p.Queue][name] = qs.heldBy(&q, name) - share
		}
	}
	for name := range g.resourceNames() {
		if left, shared := over[p.Queue][name]; shared && p.Requests[name] > left {
			return false
		}
	}
	for name := range over[p.Queue] {
		over[p.Queue][name] -= p.Requests[name]
	}
	return true
}

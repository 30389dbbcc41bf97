package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Volcano's plugin capacity lets the queue try first that holds the least of its share, and of one queue one gang after another.
// So a team that has little is served before older gangs of others:
//
//	queue a, holds 1/2 of its share: gangs 1, 4      1 tries, and has room: a holds 3/4
//	queue b, holds 2/3:              gang 2          2 tries, then 4
//	queue c, without a share:        gang 3          last of those that hold theirs, or more

// queueInLine is a queue with gangs that have yet to try.
type queueInLine struct {
	queue string
	// share and hasShare are what shareOf returns. Of equal shares a queue that deserves something comes first.
	share    float64
	hasShare bool
	// waiting are its gangs in their order, by number.
	waiting []int
	// number in the order of the first gangs.
	number int
}

// comesBefore compares whose turn it is: negative if it is this one's.
func (q *queueInLine) comesBefore(o *queueInLine) int {
	if q.share == o.share && q.hasShare != o.hasShare {
		return compareTrueFirst(q.hasShare, o.hasShare)
	}
	return cmp.Or(cmp.Compare(q.share, o.share), q.number-o.number)
}

// tryByShare has the gangs of these queues, in their order, try one after the other, by their numbers. try returns whether a gang
// got room, which changes what its queue holds. It returns which still wait.
func (qs *quotas) tryByShare(queues []string, try func(i int) (placed bool)) (still []bool) {
	still = make([]bool, len(queues))
	known := map[string]*queueInLine{}
	var line []*queueInLine
	for i, name := range queues {
		q := known[name]
		if q == nil {
			q = &queueInLine{queue: name, number: len(line)}
			q.share, q.hasShare = qs.shareOf(name)
			known[name], line = q, append(line, q)
		}
		q.waiting = append(q.waiting, i)
	}
	slices.SortFunc(line, (*queueInLine).comesBefore)
	for len(line) > 0 {
		next := line[0]
		i := next.waiting[0]
		next.waiting = next.waiting[1:]
		placed := try(i)
		still[i] = !placed
		if !placed && len(next.waiting) > 0 {
			continue // It holds what it held.
		}
		line = line[1:]
		if len(next.waiting) > 0 {
			next.share, next.hasShare = qs.shareOf(next.queue)
			at, _ := slices.BinarySearchFunc(line, next, (*queueInLine).comesBefore)
			line = slices.Insert(line, at, next)
		}
	}
	return still
}

// shareOf divides what a queue holds by what it deserves, and takes the resource with the largest quotient; 1 and false for a
// queue that deserves nothing. A queue deserves at least its guarantee, and at most its limit (updateQueueAttrShare and its
// callers in volcano.sh/volcano/pkg/scheduler/plugins/capacity/capacity.go).
func (qs *quotas) shareOf(queue string) (share float64, deserves bool) {
	q := qs.queues[queue]
	consider := func(name corev1.ResourceName) {
		limit := qs.limitOf(&q, name)
		if deserved := max(min(q.Deserved[name], limit), q.Guarantee[name]); deserved > 0 {
			share, deserves = max(share, float64(q.Allocated[name])/float64(deserved)), true
		}
	}
	for name := range q.Deserved {
		consider(name)
	}
	for name := range q.Guarantee {
		consider(name)
	}
	if !deserves {
		return 1, false
	}
	return share, true
}

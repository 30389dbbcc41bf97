package capacity

import (
	"cmp"
	"container/heap"
)

// Volcano's plugin capacity lets the queue try first that holds the least of its share, and of one queue one gang after the other.
// So a team that has little is served before older gangs of others:
//
//	queue a, holds 1/2 of its share: gangs 1, 4      1 tries, and has room: a holds 3/4
//	queue b, holds 2/3:              gang 2          2 tries, then 4
//	queue c, without a share:        gang 3          last of those that hold theirs, or more

// queueInLine is a queue with gangs that have yet to try.
type queueInLine struct {
	queue string
	// share is what it holds of its share: of the resource of which it holds most. A queue without a share counts as if it held all
	// of one, and comes after those that do.
	share    float64
	hasShare bool
	// waiting are its gangs in their order, by number.
	waiting []int
	// number in the order of the first gangs.
	number int
}

// queuesInLine is a heap.
type queuesInLine []*queueInLine

func (q queuesInLine) Len() int { return len(q) }

func (q queuesInLine) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.share == b.share && a.hasShare != b.hasShare {
		return a.hasShare
	}
	return cmp.Or(cmp.Compare(a.share, b.share), a.number-b.number) < 0
}

func (q queuesInLine) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push and Pop are never called: queues are removed from the front.
func (q *queuesInLine) Push(any) {}

func (q *queuesInLine) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// tryByShare has the gangs of these queues, in their order, try one after the other, by their numbers. try returns whether a gang
// got room, which changes what its queue holds. It returns which still wait.
func (qs *quotas) tryByShare(queues []string, try func(i int) (placed bool)) (still []bool) {
	still = make([]bool, len(queues))
	known := map[string]*queueInLine{}
	var line queuesInLine
	for i, name := range queues {
		q := known[name]
		if q == nil {
			q = &queueInLine{queue: name, number: len(line)}
			q.share, q.hasShare = qs.shareOf(name)
			known[name], line = q, append(line, q)
		}
		q.waiting = append(q.waiting, i)
	}
	heap.Init(&line)
	for len(line) > 0 {
		next := line[0]
		i := next.waiting[0]
		next.waiting = next.waiting[1:]
		if try(i) {
			next.share, next.hasShare = qs.shareOf(next.queue)
		} else {
			still[i] = true
		}
		if len(next.waiting) == 0 {
			heap.Pop(&line)
		} else {
			heap.Fix(&line, 0)
		}
	}
	return still
}

// shareOf is what a queue holds of what it deserves; 1 for one that deserves nothing (updateQueueAttrShare in
// volcano.sh/volcano/pkg/scheduler/plugins/capacity/capacity.go).
func (qs *quotas) shareOf(queue string) (share float64, deserves bool) {
	q := qs.queues[queue]
	for name, amount := range q.Deserved {
		if held := q.Allocated[name]; amount > 0 {
			share, deserves = max(share, float64(held)/float64(amount)), true
		} else if held > 0 {
			share, deserves = max(share, 1), true
		}
	}
	if !deserves {
		return 1, false
	}
	return share, true
}

package capacity

import (
	"math"
	"slices"
	"sort"
)

// The scheduler places the pods of a gang one after another, each on the node that it prefers at that moment. Workers of one
// shape fill the same number of places whichever nodes come first. Of several shapes one may take the place that another needs:
//
//	node a: 8 GPUs, 4 cores free      a worker asks for 8 GPUs and 4 cores
//	node b: 4 cores free              the launcher asks for 4 cores
//
// The gang fits, and is not placed if the launcher goes to a. Which node the scheduler prefers depends on its configuration. So
// the model says that such a gang fits only if it fits whichever nodes are chosen.

// mayBlockItself is true for a gang that fits by a view, and of which some workers may be placed so that no room is left for
// another. It errs on this side where workers in Apart differ from each other.
func (d demand) mayBlockItself(by view) bool {
	if len(d.g.Apart) == 0 {
		return false
	}
	others := int64(d.g.Workers) - int64(len(d.g.Apart))
	t := newTurns(d, by)
	// The first bound is cheap, and enough for nearly all gangs in a large cluster.
	spare := int64(d.countRoom(d.worker, by)) - others
	if t.mostOn(0) > spare && t.mostLost() > spare {
		return true
	}
	if !d.g.AnyOrder {
		others = 0 // Those in Apart choose first.
	}
	return slices.ContainsFunc(t.apart, func(one *ask) bool { return t.mayShutOut(one, others) })
}

// turns is what the workers of a gang take from each other's room.
type turns struct {
	demand
	// apart are the asks of those in Apart; worker is that of the others.
	apart []*ask
	by    view
	// alike is true if all in Apart ask for the same.
	alike bool
	// takes is true for nodes, by number, that take the others.
	takes []bool
}

func newTurns(d demand, by view) *turns {
	t := &turns{demand: d, by: by, alike: true, takes: d.nodeSet(d.worker)}
	for i := range d.g.Apart {
		one := d.compile(&d.g.Apart[i])
		t.apart, t.alike = append(t.apart, one), t.alike && (i == 0 || one.worker == t.apart[0].worker)
	}
	return t
}

// with is the view of a node on which workers are placed in thought: n of those in Apart, and some of the others.
func (t *turns) with(on *node, n int, others int32) view {
	if n == 0 && others == 0 {
		return t.by
	}
	after, beside := slices.Clone(t.by.vector(on)), t.by.beside
	for i := range n {
		t.apart[i].subtractFrom(on, after, 1)
		beside = guestOn(t.g.Apart[i].Kin, on, 1, beside)
	}
	if others > 0 {
		t.worker.subtractFrom(on, after, others)
		beside = guestOn(t.g.Shape.Kin, on, others, beside)
	}
	v := t.by
	v.vector, v.beside = func(*node) []int64 { return after }, beside
	return v
}

// room is how many of the others a node has room for beside n of those in Apart.
func (t *turns) room(on *node, n int) int64 {
	if !t.takes[on.number] {
		return 0
	}
	return int64(t.roomOn(t.worker, on, t.with(on, n, 0), math.MaxInt32))
}

// mostLost is how many of the others find no room because of those in Apart, if these take the nodes that are worst for them.
func (t *turns) mostLost() int64 {
	if !t.alike {
		return t.mostLostToAny()
	}
	// most[n] is the loss to n in Apart on the nodes so far.
	most := make([]int64, len(t.apart)+1)
	var lost []int64 // to n in Apart on one node
	for _, on := range t.apart[0].nodes {
		alone := t.room(on, 0)
		if alone == 0 {
			continue
		}
		lost = append(lost[:0], 0)
		for n := 1; n <= int(t.roomOn(t.apart[0], on, t.by, int32(len(t.apart)))); n++ {
			lost = append(lost, alone-t.room(on, n))
		}
		for all := len(t.apart); all > 0; all-- {
			for n := 1; n < min(all+1, len(lost)); n++ {
				most[all] = max(most[all], most[all-n]+lost[n])
			}
		}
	}
	return slices.Max(most)
}

// mostLostToAny is at least mostLost where those in Apart differ: as if all of them were on each of as many nodes as they are.
func (t *turns) mostLostToAny() int64 { return t.mostOn(len(t.apart)) }

// mostOn is how many of the others there is room for at most on as many nodes as there are in Apart; with n of those in Apart on
// each of the nodes, how many fewer there are then.
func (t *turns) mostOn(n int) (sum int64) {
	var all []int64
	for i := range t.nodes {
		on := &t.nodes[i]
		here := t.room(on, 0)
		if here > 0 && n > 0 {
			here -= t.room(on, n)
		}
		if here > 0 {
			all = append(all, here)
		}
	}
	slices.Sort(all)
	for _, here := range all[max(0, len(all)-len(t.apart)):] {
		sum += here
	}
	return sum
}

// mayShutOut is true if the rest of the gang, with so many of the others, may be placed so that no node has room for one in
// Apart.
func (t *turns) mayShutOut(one *ask, others int64) bool {
	rest := others + int64(len(t.apart)-1)
	for _, on := range one.nodes {
		if rest -= t.toFill(one, on, others); rest < 0 {
			return false
		}
	}
	return true
}

// toFill is how many of the rest of the gang it takes at least until a node has no room for one in Apart; more than the gang
// has for a node that they cannot fill.
func (t *turns) toFill(one *ask, on *node, others int64) int64 {
	peers := len(t.apart) - 1
	least := t.othersToFill(one, on, 0, others)
	for n := 1; n <= peers && int64(n) < least; n++ {
		beside := n
		if !t.alike {
			beside = peers
		}
		least = min(least, int64(n)+t.othersToFill(one, on, beside, others))
	}
	return least
}

// othersToFill is how many of the others it takes beside n of those in Apart.
func (t *turns) othersToFill(one *ask, on *node, n int, others int64) int64 {
	full := func(others int) bool { return t.roomOn(one, on, t.with(on, n, int32(others)), 1) == 0 }
	most := int(min(others, t.room(on, n)))
	if least := sort.Search(most+1, full); least <= most {
		return int64(least)
	}
	return int64(t.g.Workers) + 1
}

package capacity

import "slices"

// occupancy is what is free on the nodes, and which surplus could leave them. A model and its clones share the vectors until one
// of them writes: most clones are made to ask what would fit, and nothing does in a cluster in which gangs wait.
type occupancy struct {
	// width is how many amounts a vector has: one for each resource, and those of devices.
	width int
	// free is what is free now, and soon what will be free once leaving pods are gone: the vectors of all nodes, one after another.
	free, soon []int64
	// surplus is what may still be taken from each node, and inQueue the same by the queue that it counts in. Both are in the order
	// of victims. Leaving surplus is in neither.
	surplus [][]*Pod
	inQueue map[string][]*Pod
	// rooms caches how many workers of a shape fit on the nodes, and sums how much there is of a resource.
	rooms map[room]int32
	sums  map[sum]int64
	// absent are pods that are gone in thought, and vacated those that are about to go. deserted is true if nobody is there.
	absent, vacated map[*Pod]bool
	deserted        bool
	// guests are workers that are placed in thought; nil for none.
	guests *guest
	// shared is true while another model may have the same vectors.
	shared bool
}

// room names what is asked about free room: for which worker, whether leaving pods count as gone, and which crowd is gone too, in
// which version.
type room struct {
	worker  string
	soon    bool
	without *crowd
	version int
}

// sum names a sum over the nodes that meet constraints: of the resource at which place of the vectors, and whether leaving pods
// count as gone.
type sum struct {
	constraints string
	at          int
	soon        bool
}

func newOccupancy(nodes, width int) occupancy {
	return occupancy{
		width: width, free: make([]int64, nodes*width), soon: make([]int64, nodes*width), surplus: make([][]*Pod, nodes),
		inQueue: map[string][]*Pod{}, rooms: map[room]int32{}, sums: map[sum]int64{},
	}
}

// freeOn, soonOn and allOf select a vector of a node: what is free now, what will be free once leaving pods are gone, and what
// the node has. Who writes into the first two calls write before it selects them.
func (o *occupancy) freeOn(n *node) []int64 { return o.free[n.number*o.width : (n.number+1)*o.width] }
func (o *occupancy) soonOn(n *node) []int64 { return o.soon[n.number*o.width : (n.number+1)*o.width] }
func allOf(n *node) []int64                 { return n.all }

// share lets another model have the same vectors.
func (o *occupancy) share() occupancy {
	o.shared = true
	return *o
}

// write makes the vectors this model's own, and forgets what was cached of them.
func (o *occupancy) write() {
	if o.shared {
		o.free, o.soon, o.shared = slices.Clone(o.free), slices.Clone(o.soon), false
		o.rooms, o.sums = map[room]int32{}, map[sum]int64{}
		return
	}
	clear(o.rooms)
	clear(o.sums)
}

// place takes the room of n workers, who are kin, on a node. A negative number gives back all but devices: who
// placed them knows which.
func (o *occupancy) place(a *ask, kin *Kin, on *node, n int32) {
	o.write()
	a.subtractTotals(o.freeOn(on), n)
	a.subtractTotals(o.soonOn(on), n)
	if a.wishes != nil && n > 0 {
		a.takeBoth(on, o.freeOn(on), o.soonOn(on), n)
	}
	o.guests = guestOn(kin, on, n, o.guests)
}

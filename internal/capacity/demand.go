package capacity

import (
	"math"
	"slices"
)

// demand is what one gang asks of a model. worker is compiled from the shape of every worker that is not in Apart.
type demand struct {
	*Model
	g      *Gang
	worker *ask
}

func (m *Model) demandOf(g *Gang) demand { return demand{m, g, m.compile(&g.Shape)} }

// roomBy is how many of the gang's workers fit on the nodes by a view. Workers in Apart are placed first.
func (d demand) roomBy(by view) int32 {
	if len(d.g.Apart) == 0 {
		return d.countRoom(d.worker, by)
	}
	beside := newOverlay(by.vector)
	by.vector = beside.vectorOf
	for i := range d.g.Apart {
		one := d.compile(&d.g.Apart[i])
		seat := d.bestNode(one, d.g.Apart[i].Kin, d.worker, by)
		if seat == nil {
			return int32(i)
		}
		one.subtractFrom(seat, beside.ownCopy(seat), 1)
		by.beside = guestOn(d.g.Apart[i].Kin, seat, 1, by.beside)
	}
	return int32(min(int64(d.countRoom(d.worker, by))+int64(len(d.g.Apart)), math.MaxInt32))
}

// roomNow is roomBy what is free now, and roomSoon by what will be free once leaving pods are gone. Gangs of one shape share
// the answer.
func (d demand) roomNow() int32 {
	return d.knownRoom(room{worker: d.worker.worker}, d.freeView())
}

func (d demand) roomSoon() int32 {
	return d.knownRoom(room{worker: d.worker.worker, soon: true}, d.soonView())
}

// knownRoom is roomBy a view that the key names. Of a gang that does not fit it is any number below its workers.
func (d demand) knownRoom(key room, by view) int32 {
	alone, known := d.rooms[key]
	if !known {
		alone = d.countRoom(d.worker, by)
		d.rooms[key] = alone
	}
	if len(d.g.Apart) == 0 {
		return alone
	}
	if alone < d.g.Workers-int32(len(d.g.Apart)) {
		return min(alone, d.g.Workers-1) // The others do not even fit alone.
	}
	return d.roomBy(by)
}

// exactRoom is roomNow, exactly also for a gang that does not fit.
func (d demand) exactRoom() int32 {
	if len(d.g.Apart) == 0 {
		return d.roomNow()
	}
	return d.roomBy(d.freeView())
}

// fitsWithout is true if the gang fits once the crowd and the leaving pods are gone.
func (d demand) fitsWithout(c *crowd) bool {
	if in, free := d.confined(d.g); !free {
		return slices.ContainsFunc(in, func(on *Gang) bool { return d.demandOf(on).fitsWithout(c) })
	}
	if !d.withinLimit(d.g, c) {
		return false
	}
	// Gangs that may take the same crowd share the answer, as they do for the room that is free.
	key := room{worker: d.worker.worker, soon: true, without: c, version: c.version}
	if alone, known := d.rooms[key]; known && len(d.g.Apart) == 0 {
		return alone >= d.g.Workers
	}
	return d.knownRoom(key, d.viewWithout(c)) >= d.g.Workers
}

// sumVectors adds up what is free, or what will be soon, on the nodes that take any of the gang's workers, for each resource that
// the gang asks for.
func (d demand) sumVectors(soon bool) Amounts {
	nodes := d.worker.nodes // Workers in Apart may have other nodes, some of them the same: each node counts once.
	if len(d.g.Apart) > 0 {
		nodes = slices.Clone(nodes)
		known := d.nodeSet(d.worker)
		for i := range d.g.Apart {
			for _, n := range d.compile(&d.g.Apart[i]).nodes {
				if !known[n.number] {
					known[n.number] = true
					nodes = append(nodes, n)
				}
			}
		}
	}
	total := Amounts{}
	for name, amount := range d.g.requestsOf(d.g.Workers) {
		if amount <= 0 {
			continue
		}
		at, known := d.index[name]
		switch {
		case !known:
			total[name] = 0
		case len(d.g.Apart) > 0:
			// The nodes of several shapes have no key in the cache.
			total[name] = d.sumOf(nodes, at, soon)
		default:
			key := sum{constraints: d.worker.constraints, at: at, soon: soon}
			if _, summed := d.sums[key]; !summed {
				d.sums[key] = d.sumOf(nodes, at, soon)
			}
			total[name] = d.sums[key]
		}
	}
	return total
}

// sumOf adds up what is free of one resource, or what will be soon, on some nodes.
func (o *occupancy) sumOf(nodes []*node, at int, soon bool) (total int64) {
	vectors := o.free
	if soon {
		vectors = o.soon
	}
	for _, n := range nodes {
		// What one node is short of is not missing on the others.
		total += max(0, vectors[n.number*o.width+at])
	}
	return total
}

// leaving is how much leaving pods hold of the resources that the gang asks for: on its nodes or, if nothing there, within the
// limit of its queue.
func (d demand) leaving(free Amounts) Amounts {
	sum := Amounts{}
	for name, amount := range d.sumVectors(true) {
		if more := amount - free[name]; more > 0 {
			sum[name] = more
		}
	}
	if len(sum) > 0 {
		return sum
	}
	for name := range free {
		if held := d.outgoing[d.g.Queue][name]; held > 0 {
			sum[name] = held
		}
	}
	return sum
}

package capacity

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// simulation is a copy of a model in which workers are placed, move and leave in thought. The model that it was made from, and
// other simulations, stay as they are:
//
//	Model --clone--> simulation: a gang is placed, others leave, room is kept --> fitsNow, Ask, ... of what is left
type simulation struct{ *Model }

// clone begins a simulation. What placing does not change is shared.
func (m *Model) clone() simulation {
	c := *m
	c.occupancy, c.held, c.queues = m.share(), map[string][]Holder{}, maps.Clone(m.queues)
	return simulation{&c}
}

// placeIfFits places the gang in the free room or, if it does not fit there, in the room that leaving pods will free. It reports
// whether the gang fits in either.
func (s simulation) placeIfFits(g *Gang) bool {
	switch {
	case s.fitsNow(g):
		s.placeWorkers(g, g.Workers, s.freeView())
	case s.fitsSoon(g):
		s.placeWorkers(g, g.Workers, s.soonView())
	default:
		return false
	}
	return true
}

// placeWorkers takes the room of n workers of the gang on the nodes, and adds them to its queue's allocation. The free vector
// of a node may become negative if the gang is placed by the soon vector.
func (s simulation) placeWorkers(g *Gang, n int32, by view) { s.seatWorkers(g, n, by, s.place) }

// seatWorkers is placeWorkers, where place takes the room of so many workers, who are kin, on a node.
func (s simulation) seatWorkers(g *Gang, n int32, by view, place func(*ask, *Kin, *node, int32)) {
	if in, free := s.confined(g); !free {
		if on := s.roomiest(in, n, by); on != nil {
			s.seatWorkers(on, n, by, place)
		}
		return
	}
	a := s.compile(&g.Shape)
	s.allocate(g, n)
	for i := range g.Apart[:min(len(g.Apart), int(n))] {
		one := s.compile(&g.Apart[i])
		if seat := s.bestNode(one, g.Apart[i].Kin, a, by); seat != nil {
			place(one, g.Apart[i].Kin, seat, 1)
		}
		n--
	}
	if a.rules != nil {
		for i, here := range s.seatingOf(a, by).seats() {
			if here = min(here, int64(n)); here > 0 {
				place(a, g.Shape.Kin, a.nodes[i], int32(here))
				n -= int32(here)
			}
		}
		return
	}
	for _, node := range a.nodes {
		if here := a.countFitting(node, by.vector(node), n); here > 0 {
			place(a, g.Shape.Kin, node, here)
			n -= here
		}
	}
}

// seat is the room that workers of a gang have on a node.
type seat struct {
	of  *ask
	kin *Kin
	on  *node
	n   int32
	// parts are what they have of the node's devices.
	parts []int64
}

// settle places a gang that fits now, and returns where, by which unsettle gives all of it back.
func (s simulation) settle(g *Gang) (seats []seat) {
	s.seatWorkers(g, g.Workers, s.freeView(), func(of *ask, kin *Kin, on *node, n int32) {
		// Which devices it gets is decided now, and when it leaves it must give back the same.
		before := slices.Clone(of.devicesIn(on, s.freeOn(on)))
		s.place(of, kin, on, n)
		seats = append(seats, seat{of, kin, on, n, lessThan(before, of.devicesIn(on, s.freeOn(on)))})
	})
	return seats
}

// unsettle has a gang leave its seats.
func (s simulation) unsettle(g *Gang, seats []seat) {
	for _, t := range seats {
		s.place(t.of, t.kin, t.on, -t.n)
		addAll(t.of.devicesIn(t.on, s.freeOn(t.on)), t.parts)
		addAll(t.of.devicesIn(t.on, s.soonOn(t.on)), t.parts)
	}
	s.deallocate(g.Queue, g.requestsOf(g.Workers))
}

// reserve keeps for a waiting gang the room that it needs. While it does not fit, it reserves all free room on its nodes,
// because surplus that grew into it would have to leave again.
func (s simulation) reserve(g *Gang) {
	for on := range g.variants() {
		if s.fitsNow(on) {
			s.placeWorkers(on, on.Workers, s.freeView())
			return
		}
	}
	if answer := s.Ask(g); answer.Unknown != "" || answer.QueueLimit {
		return // It does not wait for room on nodes, as far as the model knows.
	}
	for _, on := range s.places(g) {
		d := s.demandOf(on)
		if d.roomBy(emptyView()) < on.Workers {
			continue // It would not fit if nothing else ran. One job that is too large must not keep all others from growing for ever.
		}
		s.write()
		s.reserveNodes(d.worker)
		for i := range on.Apart {
			s.reserveNodes(s.compile(&on.Apart[i]))
		}
	}
}

// reserveNodes leaves nothing free of the resources that the worker asks for, on the nodes that take it.
func (o *occupancy) reserveNodes(a *ask) {
	for _, n := range a.nodes {
		free, soon := o.freeOn(n), o.soonOn(n)
		for _, at := range a.at {
			free[at], soon[at] = min(free[at], 0), min(soon[at], 0)
		}
	}
}

// emptyFor frees what a gang may have at any moment: what leaving pods hold, and surplus that it may take.
func (s simulation) emptyFor(g *Gang) {
	s.write()
	for queue, held := range s.outgoing {
		s.deallocate(queue, held)
	}
	takes := s.takesOf(g)
	for i := range s.nodes {
		soon := s.soonOn(&s.nodes[i])
		for _, p := range s.surplus[i] {
			if takes(p) {
				s.release(soon, p)
				s.deallocate(p.Queue, p.Requests)
			}
		}
		copy(s.freeOn(&s.nodes[i]), soon)
	}
}

// depart frees what pods hold.
func (s simulation) depart(pods []*Pod) {
	s.write()
	for _, p := range pods {
		// What comes after asks only what fits now, so the soon vector may stay behind.
		s.release(s.freeOn(p.on), p)
		s.deallocate(p.Queue, p.Requests)
	}
}

// removeSurplus takes surplus off its nodes and out of its queues' allocations.
func (s simulation) removeSurplus(victims []*Pod) {
	s.write()
	s.surplus, s.inQueue = slices.Clone(s.surplus), maps.Clone(s.inQueue) // Clones share them.
	s.absent = withPods(s.absent, victims)
	for _, p := range victims {
		there := &s.surplus[p.on.number]
		if !slices.Contains(*there, p) {
			continue
		}
		*there, s.inQueue[p.Queue] = dropPod(*there, p), dropPod(s.inQueue[p.Queue], p)
		s.release(s.freeOn(p.on), p)
		s.release(s.soonOn(p.on), p)
		s.deallocate(p.Queue, p.Requests)
	}
}

// vacate marks surplus as leaving and adds its room to what will be free on its node. Its queue's allocation stays, because
// keepsShare subtracts claimed surplus from it.
func (s simulation) vacate(surplus types.UID) {
	s.claimed[surplus] = true
	s.write()
	for i := range s.nodes {
		soon := s.soonOn(&s.nodes[i])
		for _, p := range s.surplus[i] {
			if p.Surplus.UID != surplus {
				continue
			}
			s.release(soon, p)
			s.vacated = withPods(s.vacated, []*Pod{p})
			return
		}
	}
}

// move has workers move to other nodes. asks are what they ask for, in the same order.
func (s simulation) move(moves []Move, asks []*ask) {
	all := make([]Surplus, len(moves))
	for i := range moves {
		all[i] = moves[i].Surplus
	}
	pods := s.podsOf(all)
	s.removeSurplus(slices.Collect(maps.Values(pods)))
	for i := range moves {
		s.place(asks[i], pods[moves[i].UID].Kin, &s.nodes[s.number[moves[i].To]], 1)
	}
}

// withPods is a set of pods with more of them.
func withPods(set map[*Pod]bool, more []*Pod) map[*Pod]bool {
	all := make(map[*Pod]bool, len(set)+len(more))
	maps.Copy(all, set)
	for _, p := range more {
		all[p] = true
	}
	return all
}

// dropPod returns a copy of the pods without one of them.
func dropPod(pods []*Pod, one *Pod) []*Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *Pod) bool { return p == one })
}

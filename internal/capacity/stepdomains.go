package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// A job may have each of its steps within one node, or within one HyperNode of a tier. Each of these is then asked as if no other
// were there, and takes whole steps:
//
//	step 4, single nodes:  3 free | 9 free | 4 free  ->  none | 8 | 4

// StepDomains says where a job has its steps. Each step stays within one node or HyperNode, whose name is the key of the maps.
type StepDomains struct {
	// Tier is that of the HyperNodes; 0 for single nodes.
	Tier int
	// Placed is how much surplus of the job has a node within each, and Waiting how much waits for one there.
	Placed, Waiting map[string]int32
	// Before are those that it was told of last: of equals they are chosen again.
	Before map[string]bool
}

// StepDomain is a node or HyperNode with whole steps of a job.
type StepDomain struct {
	Name string
	// Workers is how much surplus the job may have within it in all.
	Workers int32
}

// mostNodesWithin is how many nodes a HyperNode with steps has at most: each pod of them carries their names.
const mostNodesWithin = 1000

// whole is how much of the surplus with a node makes whole steps.
func (d *StepDomains) whole(step int32) (n int32) {
	for _, placed := range d.Placed {
		n += placed - placed%step
	}
	return n
}

// HeldDomains are where the job has whole steps, by name. They are never nil.
func (g *Grower) HeldDomains() []StepDomain {
	held := []StepDomain{}
	for _, name := range slices.Sorted(maps.Keys(g.Domains.Placed)) {
		if n := g.WholeSteps(g.Domains.Placed[name]); n > 0 {
			held = append(held, StepDomain{name, n})
		}
	}
	return held
}

// domainGrowth is a grower whose steps are each within one domain, while it is given room.
type domainGrowth struct {
	// may is how much surplus it may have within each domain, first of those in which it has some.
	may []StepDomain
	// rooms are those that it may try; nil until they are looked for. Others may take of them.
	rooms []stepRoom
}

// stepRoom is a domain that may have room for a step.
type stepRoom struct {
	name string
	// lacks is how many workers complete a step there: less than a step if one lacks workers.
	lacks int32
	// on is the gang within a HyperNode, and node a single node.
	on   *Gang
	node *node
	// rank is the order in which rooms are tried, and most how many workers had room there.
	rank int
	most int32
}

// mayWithin is how much surplus the job may have within a domain, to be changed.
func (g *domainGrowth) mayWithin(name string) *int32 {
	at := slices.IndexFunc(g.may, func(d StepDomain) bool { return d.Name == name })
	if at < 0 {
		at = len(g.may)
		g.may = append(g.may, StepDomain{Name: name})
	}
	return &g.may[at].Workers
}

// told are the domains in which the job may have surplus. They are never nil.
func (g *domainGrowth) told() []StepDomain {
	return slices.DeleteFunc(slices.Clone(g.may), func(d StepDomain) bool { return d.Workers == 0 })
}

// growInDomains is grow for a grower whose steps are each within one domain.
func (s simulation) growInDomains(c *growing, part int32) (grown int32) {
	if c.beyondModel() != "" {
		return 0
	}
	if c.within.rooms == nil {
		c.within.rooms = s.stepRooms(c)
	}
	for len(c.within.rooms) > 0 && grown+c.Step <= part {
		r := &c.within.rooms[0]
		if !s.seatWithin(c, r) {
			c.within.rooms = c.within.rooms[1:] // Room only shrinks while it is divided.
			continue
		}
		*c.within.mayWithin(r.name) += c.Step
		grown += c.Step
		r.lacks = c.Step
	}
	return grown
}

// seatWithin places what a grower lacks of a step within a domain; false if there is no room for all of it. The rest of a step
// counts on what leaving pods free: one of its own may be among these.
func (s simulation) seatWithin(c *growing, r *stepRoom) bool {
	on, by := &c.Gang, s.freeView()
	if r.on != nil {
		on = r.on
	}
	asked := *on
	if asked.Workers = r.lacks; r.lacks < c.Step {
		by = s.soonView()
		if !s.withinLimit(&asked, &crowd{}) {
			return false
		}
	} else if _, headroom := s.headroom(&asked); headroom < r.lacks {
		return false
	}
	if r.on != nil {
		if s.demandOf(r.on).roomBy(by) < r.lacks {
			return false
		}
		s.placeWorkers(r.on, r.lacks, by)
		return true
	}
	a := s.compile(&c.Shape)
	if s.roomOn(a, r.node, by, math.MaxInt32) < r.lacks {
		return false
	}
	s.allocate(&c.Gang, r.lacks)
	s.place(a, c.Shape.Kin, r.node, r.lacks)
	return true
}

// stepRooms are the domains that have room for what a grower lacks there: first those in which a step of its lacks workers or
// some wait, then those that it was told of last, then those with the least room, so that large ones stay whole.
func (s simulation) stepRooms(c *growing) []stepRoom {
	rooms := []stepRoom{}
	in, free := s.confined(&c.Gang)
	add := func(r stepRoom, nodes []string) {
		d := c.Domains
		rest := d.Placed[r.name] % c.Step
		r.lacks = c.Step - rest
		inHyperNode := free || slices.ContainsFunc(in, func(on *Gang) bool { return on.in.HasAll(nodes) })
		if r.most < r.lacks || !inHyperNode {
			return
		}
		switch {
		case rest > 0:
			r.rank = -2
		case d.Waiting[r.name] > 0:
			r.rank = -1
		case !d.Before[r.name]:
			r.rank = 1
		}
		rooms = append(rooms, r)
	}
	if c.Domains.Tier > 0 {
		for _, d := range s.hyperNodes {
			if d.Tier == c.Domains.Tier && len(d.Nodes) <= mostNodesWithin {
				on := c.Gang.boundTo(d)
				add(stepRoom{name: d.Name, on: on, most: s.demandOf(on).roomBy(s.viewFor(c, d.Name))}, d.Nodes)
			}
		}
	} else {
		s.addNodeRooms(c, add)
	}
	slices.SortFunc(rooms, func(a, b stepRoom) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.most, b.most), cmp.Compare(a.name, b.name))
	})
	return rooms
}

// addNodeRooms adds the nodes with room. Where rules tie nodes together each is asked as a HyperNode of one node.
func (s simulation) addNodeRooms(c *growing, add func(r stepRoom, nodes []string)) {
	a := s.compile(&c.Shape)
	for _, n := range a.nodes {
		most := a.countFitting(n, s.viewFor(c, n.Name).vector(n), math.MaxInt32)
		if most == 0 {
			continue // Of 5,000 nodes most are full.
		}
		r := stepRoom{name: n.Name, node: n, most: most}
		if a.rules != nil && !a.rules.nodeBound {
			r.on = c.Gang.boundTo(s.domainOf(n))
		}
		add(r, []string{n.Name})
	}
}

// viewFor is by what the room of a domain is judged: with what leaving pods free, if a step of the grower lacks workers there.
func (s simulation) viewFor(c *growing, name string) view {
	if c.Domains.Placed[name]%c.Step > 0 {
		return s.soonView()
	}
	return s.freeView()
}

// domainOf is a node as a domain. Its name is that of no HyperNode.
func (m *inventory) domainOf(n *node) *domain {
	d := &domain{has: make([]bool, len(m.nodes))}
	d.Name, d.Nodes, d.has[n.number] = "node "+n.Name, []string{n.Name}, true
	return d
}

// withDomains adds where a grower may have its steps.
func withDomains(all map[types.NamespacedName][]StepDomain, c *growing) map[types.NamespacedName][]StepDomain {
	if all == nil {
		all = map[types.NamespacedName][]StepDomain{}
	}
	all[c.Job] = c.within.told()
	return all
}

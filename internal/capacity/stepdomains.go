package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/platform/topology"
)

// A job may have each of its steps within one node, or within one HyperNode of a tier. Each of these is then asked as if no other
// were there, and takes whole steps:
//
//	step 4, single nodes:  3 free | 9 free | 4 free  ->  none | 8 | 4

// StepDomains are the nodes or HyperNodes of which each step of a job is within one.
type StepDomains struct {
	// Tier is that of the HyperNodes; 0 for single nodes.
	Tier int
	// Placed is how much surplus of the job has a node within each, by its name.
	Placed map[string]int32
}

// StepDomain is a node or HyperNode with whole steps of a job.
type StepDomain struct {
	Name string
	// Nodes are those within it, in order; none for a HyperNode that is gone.
	Nodes []string
	// Workers is how much surplus the job may have within it in all.
	Workers int32
}

// withDomains adds where a grower may have its steps.
func (m *inventory) withDomains(
	all map[types.NamespacedName][]StepDomain, c *growing,
) map[types.NamespacedName][]StepDomain {
	if all == nil {
		all = map[types.NamespacedName][]StepDomain{}
	}
	for _, name := range slices.Sorted(maps.Keys(c.may)) {
		if n := c.may[name]; n > 0 {
			all[c.Job] = append(all[c.Job], StepDomain{Name: name, Nodes: m.nodesWithin(c.Domains.Tier, name), Workers: n})
		}
	}
	return all
}

// nodesWithin are the nodes of a HyperNode or, of tier 0, the node of that name.
func (m *inventory) nodesWithin(tier int, name string) []string {
	if tier == 0 {
		return []string{name}
	}
	for _, d := range m.hyperNodes {
		if d.Tier == tier && d.Name == name {
			return d.Nodes
		}
	}
	return nil
}

// stepRoom is a domain that may have room for a step: for so many workers at most.
type stepRoom struct {
	*domain

	name string
	most int32
}

// growInDomains is grow for a grower whose steps are each within one domain. The rest of steps that lack workers comes first,
// then domains in which the least room is left over, so that large ones stay whole.
func (s simulation) growInDomains(c *growing, part int32) (grown int32) {
	rooms := s.stepRooms(c)
	for i := range rooms {
		r := &rooms[i]
		rest := c.Domains.Placed[r.name] % c.Step
		if rest == 0 || c.may[r.name] > c.Domains.Placed[r.name] || grown+c.Step > part {
			continue
		}
		if s.seatWithin(c, r.domain, c.Step-rest) {
			c.may[r.name] += c.Step
			grown += c.Step
		}
	}
	for i := range rooms {
		r := &rooms[i]
		if c.may[r.name] < c.Domains.Placed[r.name] {
			continue // A step lacks workers there, for which there is no room.
		}
		for grown+c.Step <= part && s.seatWithin(c, r.domain, c.Step) {
			c.may[r.name] += c.Step
			grown += c.Step
		}
	}
	return grown
}

// seatWithin places so many workers of a grower within a domain; false if there is no room for all of them.
func (s simulation) seatWithin(c *growing, d *domain, n int32) bool {
	on := c.Gang.boundTo(d)
	if s.largest(on) < n {
		return false
	}
	s.placeWorkers(on, n, s.freeView())
	return true
}

// stepRooms are the domains that a grower's steps may be within, those with the least room first. Those without room for the
// least that it could need there are left out.
func (s simulation) stepRooms(c *growing) []stepRoom {
	in, free := s.confined(&c.Gang)
	may := func(nodes []string) bool {
		return free || slices.ContainsFunc(in, func(on *Gang) bool { return on.in.HasAll(nodes) })
	}
	var rooms []stepRoom
	if c.Domains.Tier > 0 {
		for _, d := range s.hyperNodes {
			if d.Tier == c.Domains.Tier && may(d.Nodes) {
				rooms = append(rooms, stepRoom{d, d.Name, s.largest(c.Gang.boundTo(d))})
			}
		}
	} else {
		a := s.compile(&c.Shape)
		for _, n := range a.nodes {
			// Only nodes with room become domains: of 5,000 most have none.
			if most := a.countFitting(n, s.freeOn(n), math.MaxInt32); most > 0 && may([]string{n.Name}) {
				rooms = append(rooms, stepRoom{s.domainOf(n), n.Name, most})
			}
		}
	}
	rooms = slices.DeleteFunc(rooms, func(r stepRoom) bool { return r.most < c.Step-c.Domains.Placed[r.name]%c.Step })
	slices.SortFunc(rooms, func(a, b stepRoom) int { return cmp.Or(cmp.Compare(a.most, b.most), cmp.Compare(a.name, b.name)) })
	return rooms
}

// domainOf is a node as a domain. Its name is that of no HyperNode.
func (m *inventory) domainOf(n *node) *domain {
	d := &domain{Domain: topology.Domain{Name: "node " + n.Name, Nodes: []string{n.Name}}, has: make([]bool, len(m.nodes))}
	d.has[n.number] = true
	return d
}

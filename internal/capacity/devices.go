package capacity

import (
	"math"
	"slices"
)

// Where nodes share devices, a vector goes on after the resources with what is free of each device, so that whatever adds pods to
// vectors and takes them out again does so for their parts:
//
//	resources ...  | slots memory cores | slots memory cores | ...
//	               | device 0           | device 1           |
//
// A worker that asks for parts needs the resources, which schedulers count by node, and then devices. A node that does not tell
// what is free of each has no room for it here. Where that may be wrong the gang is not judged: see isUnclear.

// widthOfDevices is how many amounts a vector has for devices.
func widthOfDevices(nodes []Node) (width int) {
	for i := range nodes {
		if d := nodes[i].Devices; d != nil {
			width = max(width, len(d.All))
		}
	}
	return width
}

// addDevices adds the node's devices to what it has, from place at on.
func (n *node) addDevices(at int) {
	if n.Devices != nil {
		copy(n.all[at:], n.Devices.All)
		n.unclear = n.Devices.Unclear
	}
}

// isUnclear is true for a pod that does not say, or says wrongly, which parts of its node's devices it has.
func (p *Pod) isUnclear() bool {
	return p.Parts != nil && p.on.Devices != nil && !p.on.Devices.KnowsParts(p.Parts)
}

// shiftParts adds what a pod has of its node's devices to a vector, in which they begin at place at, times 1 or -1.
func (p *Pod) shiftParts(vector []int64, at int, times int64) {
	if p.Parts != nil && p.on.Devices != nil {
		p.on.Devices.AddParts(vector[at:], p.Parts, times)
	}
}

// devicesIn is the part of a node's vector that is about its devices; nil for a worker that asks for none.
func (a *ask) devicesIn(on *node, vector []int64) []int64 {
	if a.wishes == nil || on.Devices == nil {
		return nil
	}
	return vector[a.devicesAt : a.devicesAt+len(on.Devices.All)]
}

// countByDevices is how many workers fit on a node by its devices, at most limit.
func (a *ask) countByDevices(on *node, free []int64, limit int32) int32 {
	if on.unclear || on.Devices == nil {
		return 0
	}
	return a.wishes.CountFitting(on.Devices.All, a.devicesIn(on, free), limit)
}

// takeDevices takes the devices of n workers from a vector of a node.
func (a *ask) takeDevices(on *node, vector []int64, n int32) {
	if on.Devices != nil {
		a.wishes.TakeDevices(on.Devices.All, a.devicesIn(on, vector), n)
	}
}

// takeBoth takes the same devices from what is free of them and from what will be: those that are free now, if they are enough.
func (a *ask) takeBoth(on *node, free, soon []int64, n int32) {
	if on.Devices == nil {
		return
	}
	free, soon = a.devicesIn(on, free), a.devicesIn(on, soon)
	after, from := slices.Clone(free), free
	if a.wishes.TakeDevices(on.Devices.All, after, n) < n {
		after, from = slices.Clone(soon), soon
		a.wishes.TakeDevices(on.Devices.All, after, n)
	}
	for i := range after {
		taken := from[i] - after[i]
		free[i], soon[i] = free[i]-taken, soon[i]-taken
	}
}

// lessThan is by how much amounts are less than before.
func lessThan(before, now []int64) []int64 {
	less := slices.Clone(before)
	for i := range less {
		less[i] -= now[i]
	}
	return less
}

// addAll adds amounts to others.
func addAll(to, more []int64) {
	for i := range to {
		to[i] += more[i]
	}
}

// isUnclear is true for a gang that may fit or not by a view: nodes that tell what is free of each device have no room for it,
// and together with those that do not tell it there may be room.
func (m *Model) isUnclear(g *Gang, by view) bool {
	if g.Shape.Wishes == nil && !slices.ContainsFunc(g.Apart, func(s Shape) bool { return s.Wishes != nil }) {
		return false
	}
	if in, free := m.confined(g); !free {
		return slices.ContainsFunc(in, func(on *Gang) bool { return m.isUnclear(on, by) })
	}
	unseen := int64(0)
	for _, s := range append([]Shape{g.Shape}, g.Apart...) {
		for _, n := range m.compile(&s).nodes {
			if n.unclear && s.Wishes != nil {
				unseen += int64(m.compile(&s).countByTotals(by.vector(n), math.MaxInt32))
			}
		}
	}
	if unseen == 0 {
		return false
	}
	room := int64(m.demandOf(g).roomBy(by))
	return room < int64(g.Workers) && room+unseen >= int64(g.Workers)
}

// isBeyond is true for a gang that is not judged: the model does not cover it, or it is unclear what is free for it.
func (m *Model) isBeyond(g *Gang) bool {
	return g.beyondModel() != "" || m.isUnclear(g, m.soonView())
}

// IsJudgedBy is true if the model says how far the job may grow.
func (g *Grower) IsJudgedBy(m *Model) bool {
	return g.IsJudged() && !m.isUnclear(&g.Gang, m.freeView())
}

package capacity

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/capacity/devices"
)

// Drawn is a gang of the reference mix, whose workers all have one shape, and how often such gangs come. Weights are relative
// to each other.
type Drawn struct {
	Gang
	Weight float64
}

// Fragmentation is how much of the free amount of a resource a random gang of the mix cannot use:
//
//	Unusable = sum over gangs of weight * (1 - usable/Free) / sum of weights
//	usable   = what the workers that fit would take, or 0 if the whole gang does not fit
//
// This is the measure of "Beware of Fragmentation" (USENIX ATC 2023), for gangs in place of single pods. Devices that pods share
// count as the parts of them that are free, and not as slots.
type Fragmentation struct {
	// Free is how much of the resource is free on all nodes.
	Free float64
	// Unusable is the expected share of Free, from 0 to 1, that a gang cannot use. It is 0 if nothing is free.
	Unusable float64
	// Weight is the total weight of the gangs that ask for the resource. If it is 0, Unusable means nothing.
	Weight float64
}

// MeasureFragmentation measures the resource against the mix. Gangs that do not ask for the resource, or that the model does not
// cover, are left out. The limits of queues play no part.
func (m *inventory) MeasureFragmentation(resource corev1.ResourceName, mix []Drawn) Fragmentation {
	var f Fragmentation
	if _, known := m.index[resource]; known {
		for i := range m.nodes {
			f.Free += m.measure(&m.nodes[i], resource, m.freeOn(&m.nodes[i]))
		}
	}
	for i := range mix {
		d := &mix[i]
		each := d.Shape.Requests[resource]
		if each <= 0 || d.Shape.Unmodelled != "" {
			continue
		}
		f.Weight += d.Weight
		if f.Free == 0 {
			continue
		}
		usable := 0.0
		if a := m.compile(&d.Shape); m.countRoom(a, m.freeView()) >= d.Workers {
			for at, here := range m.eachRoom(a) {
				usable += m.taken(a, a.nodes[at], here, each, resource)
			}
		}
		f.Unusable += d.Weight * (1 - min(1, usable/f.Free))
	}
	if f.Weight > 0 {
		f.Unusable /= f.Weight
	}
	return f
}

// measure is how much of a resource a vector of a node has: of devices that are shared, how many their parts are together.
func (m *inventory) measure(n *node, resource corev1.ResourceName, vector []int64) float64 {
	if resource == devices.Number {
		if n.Devices == nil || n.unclear {
			return 0
		}
		at := len(m.names)
		return float64(n.Devices.CountFree(vector[at:at+len(n.Devices.All)])) / 1000
	}
	return float64(max(0, vector[m.index[resource]]))
}

// eachRoom is how many workers fit on each node of an ask by what is free, if no others are placed.
func (m *inventory) eachRoom(a *ask) []int64 {
	if a.rules != nil {
		return m.seatingOf(a, m.freeView()).seats()
	}
	rooms := make([]int64, len(a.nodes))
	for i, n := range a.nodes {
		rooms[i] = int64(a.countFitting(n, m.freeOn(n), math.MaxInt32))
	}
	return rooms
}

// taken is how much of a resource, of which each asks for so much, workers would take of what is free on a node.
func (m *inventory) taken(a *ask, n *node, workers, each int64, resource corev1.ResourceName) float64 {
	if resource != devices.Number || workers <= 0 {
		return float64(workers * each)
	}
	free := m.freeOn(n)
	after := slices.Clone(free)
	a.subtractFrom(n, after, int32(workers))
	return m.measure(n, resource, free) - m.measure(n, resource, after)
}

// FragmentationOf is the fragmentation of several resources together, weighted by how much of each is free. A resource that no
// gang asks for counts in Free but not in Unusable.
func (m *inventory) FragmentationOf(resources []corev1.ResourceName, mix []Drawn) Fragmentation {
	var all Fragmentation
	var asked float64
	for _, name := range resources {
		f := m.MeasureFragmentation(name, mix)
		all.Free += f.Free
		all.Weight += f.Weight
		if f.Weight > 0 {
			asked += f.Free
			all.Unusable += f.Free * f.Unusable
		}
	}
	if asked > 0 {
		all.Unusable /= asked
	}
	return all
}

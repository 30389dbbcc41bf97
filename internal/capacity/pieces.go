package capacity

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mostDrawn is of how many different gangs pieces are measured: each visits all nodes that take its workers. Of more the most
// frequent count.
const mostDrawn = 256

// Device is one model of an accelerator.
type Device struct {
	Resource corev1.ResourceName
	// Label of nodes that names the model, and Model its value; Model is empty for nodes that name none.
	Label, Model string
}

// isOn is true for a node that has the device.
func (d *Device) isOn(n *node) bool {
	return n.Allocatable[d.Resource] > 0 && n.Labels[d.Label] == d.Model
}

// Pieces is how much of a model of accelerator is free, and how much of that the gangs that wait in a queue cannot use.
type Pieces struct {
	Queue string
	Device
	// Fragmentation is over the gangs that wait in the queue and may have the device; Weight is how many they are.
	Fragmentation
}

// MeasurePieces measures each device for each queue in which gangs wait, in the order of queues and devices. What a gang can use
// of a device is the workers that fit on nodes with it, and nothing if the whole gang fits nowhere. Gangs that the model does not
// cover are left out. The limits of queues play no part.
func (m *Model) MeasurePieces(devices []Device, waiting []*Gang) []Pieces {
	if len(devices) == 0 || len(waiting) == 0 {
		return nil
	}
	on := make([]int, len(m.nodes))
	free := make([]float64, len(devices))
	for i := range m.nodes {
		n := &m.nodes[i]
		on[i] = slices.IndexFunc(devices, func(d Device) bool { return d.isOn(n) })
		if on[i] >= 0 {
			free[on[i]] += m.measure(n, devices[on[i]].Resource, m.freeOn(n))
		}
	}
	found := map[string][]Pieces{}
	for _, d := range m.drawnFrom(waiting) {
		of := found[d.Queue]
		if of == nil {
			of = make([]Pieces, len(devices))
			found[d.Queue] = of
		}
		m.addUse(of, devices, on, free, &d)
	}
	var all []Pieces
	for queue, of := range found {
		for i := range of {
			if p := &of[i]; p.Weight > 0 {
				p.Queue, p.Device, p.Free = queue, devices[i], free[i]
				p.Unusable /= p.Weight
				all = append(all, *p)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Pieces) int { return cmp.Compare(a.Queue, b.Queue) })
	return all
}

// drawnFrom lists the different gangs among those that wait, the most frequent first, each with its number as its weight.
func (m *Model) drawnFrom(waiting []*Gang) []Drawn {
	type kind struct {
		queue, worker string
		workers       int32
		within        int
	}
	at, all := map[kind]int{}, []Drawn{}
	for _, g := range waiting {
		if g.beyondModel() != "" {
			continue
		}
		k := kind{queue: g.Queue, worker: m.compile(&g.Shape).worker, workers: g.Workers, within: math.MaxInt}
		if g.Within != nil {
			k.within = *g.Within
		}
		i, known := at[k]
		if !known {
			i = len(all)
			at[k] = i
			all = append(all, Drawn{Gang: *g})
		}
		all[i].Weight++
	}
	// The most frequent, because of more than mostDrawn the rest is cut.
	slices.SortStableFunc(all, func(a, b Drawn) int { return cmp.Compare(b.Weight, a.Weight) })
	return all[:min(len(all), mostDrawn)]
}

// addUse adds to the sums of a queue what a gang cannot use of each device that it may have. on is which device each node has,
// free how much of each is free.
func (m *Model) addUse(of []Pieces, devices []Device, on []int, free []float64, d *Drawn) {
	a := m.compile(&d.Shape)
	fits := slices.ContainsFunc(m.places(&d.Gang), func(g *Gang) bool {
		return m.demandOf(g).roomBy(m.freeView()) >= g.Workers
	})
	usable, may := make([]float64, len(devices)), make([]bool, len(devices))
	for i, here := range m.eachRoom(a) {
		n := a.nodes[i]
		device := on[n.number]
		if device < 0 {
			continue
		}
		resource := devices[device].Resource
		each := d.Shape.Requests[resource]
		if each <= 0 {
			continue
		}
		may[device] = true
		if fits {
			usable[device] += m.taken(a, n, here, each, resource)
		}
	}
	for i := range devices {
		if !may[i] {
			continue
		}
		of[i].Weight += d.Weight
		if free[i] > 0 {
			of[i].Unusable += d.Weight * (1 - min(1, usable[i]/free[i]))
		}
	}
}

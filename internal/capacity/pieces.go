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
	s := m.newSurvey(devices)
	found := map[string][]Pieces{}
	for _, d := range s.drawnFrom(waiting) {
		of := found[d.Queue]
		if of == nil {
			of = make([]Pieces, len(devices))
			found[d.Queue] = of
		}
		s.addUse(of, &d)
	}
	var all []Pieces
	for queue, of := range found {
		for i := range of {
			if p := &of[i]; p.Weight > 0 {
				p.Queue, p.Device, p.Free = queue, devices[i], s.amounts[i]
				p.Unusable /= p.Weight
				all = append(all, *p)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Pieces) int { return cmp.Compare(a.Queue, b.Queue) })
	return all
}

// survey measures devices for the gangs that wait.
type survey struct {
	*Model
	devices []Device
	// on is which of the devices each node has, by the node's number; -1 for none of them.
	on []int
	// amounts are how much of each device is free.
	amounts []float64
}

func (m *Model) newSurvey(devices []Device) *survey {
	s := &survey{Model: m, devices: devices, on: make([]int, len(m.nodes)), amounts: make([]float64, len(devices))}
	for i := range m.nodes {
		n := &m.nodes[i]
		s.on[i] = slices.IndexFunc(devices, func(d Device) bool { return d.isOn(n) })
		if device := s.on[i]; device >= 0 {
			s.amounts[device] += m.measure(n, devices[device].Resource, m.freeOn(n))
		}
	}
	return s
}

// drawnFrom lists the different gangs among those that wait, the most frequent first, each with its number as its weight.
func (s *survey) drawnFrom(waiting []*Gang) []Drawn {
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
		k := kind{queue: g.Queue, worker: s.compile(&g.Shape).worker, workers: g.Workers, within: math.MaxInt}
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

// addUse adds to the sums of a queue what a gang cannot use of each device that it may have.
func (s *survey) addUse(of []Pieces, d *Drawn) {
	a := s.compile(&d.Shape)
	fits := slices.ContainsFunc(s.places(&d.Gang), func(g *Gang) bool {
		return s.demandOf(g).roomBy(s.freeView()) >= g.Workers
	})
	usable, may := make([]float64, len(s.devices)), make([]bool, len(s.devices))
	for i, here := range s.eachRoom(a) {
		n := a.nodes[i]
		device := s.on[n.number]
		if device < 0 {
			continue
		}
		resource := s.devices[device].Resource
		each := d.Shape.Requests[resource]
		if each <= 0 {
			continue
		}
		may[device] = true
		if fits {
			usable[device] += s.taken(a, n, here, each, resource)
		}
	}
	for i := range s.devices {
		if !may[i] {
			continue
		}
		of[i].Weight += d.Weight
		if s.amounts[i] > 0 {
			of[i].Unusable += d.Weight * (1 - min(1, usable[i]/s.amounts[i]))
		}
	}
}

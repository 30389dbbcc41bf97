package capacity

import corev1 "k8s.io/api/core/v1"

// Drawn is a gang of the reference mix, whose workers all have one shape, and how often such gangs come. Weights are relative
// to each other.
type Drawn struct {
	Gang
	Weight float64
}

// Fragmentation is how much of the free amount of a resource a random gang of the mix cannot use:
//
//	Unusable = sum over gangs of weight * (1 - usable/Free) / sum of weights
//	usable   = workers that fit * request, or 0 if the whole gang does not fit
//
// This is the measure of "Beware of Fragmentation" (USENIX ATC 2023), for gangs in place of single pods.
type Fragmentation struct {
	// Free is how much of the resource is free on all nodes.
	Free int64
	// Unusable is the expected share of Free, from 0 to 1, that a gang cannot use. It is 0 if nothing is free.
	Unusable float64
	// Weight is the total weight of the gangs that ask for the resource. If it is 0, Unusable means nothing.
	Weight float64
}

// MeasureFragmentation measures the resource against the mix. Gangs that do not ask for the resource, or that the model does not
// cover, are left out. The limits of queues play no part.
func (m *inventory) MeasureFragmentation(resource corev1.ResourceName, mix []Drawn) Fragmentation {
	var f Fragmentation
	if at, known := m.index[resource]; known {
		for i := range m.nodes {
			f.Free += max(0, m.freeOn(&m.nodes[i])[at])
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
		var usable int64
		a := m.compile(&d.Shape)
		if room := m.countRoom(a, m.freeView()); room >= d.Workers {
			usable = int64(room) * each
		}
		f.Unusable += d.Weight * (1 - float64(usable)/float64(f.Free))
	}
	if f.Weight > 0 {
		f.Unusable /= f.Weight
	}
	return f
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
			asked += float64(f.Free)
			all.Unusable += float64(f.Free) * f.Unusable
		}
	}
	if asked > 0 {
		all.Unusable /= asked
	}
	return all
}

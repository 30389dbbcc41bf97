package capacity

import corev1 "k8s.io/api/core/v1"

// Drawn is a gang of the reference mix, all of one shape, and how often it is asked for; weights are relative to each other.
type Drawn struct {
	Gang
	Weight float64
}

// Fragmentation is how much of what is free of a resource a gang drawn from the mix is expected not to be able to use.
type Fragmentation struct {
	// Free is how much of the resource is free on all nodes.
	Free int64
	// Unusable is the expected share of it, from 0 to 1, that lies where the gang's workers do not fit; all of it when the whole
	// gang does not fit. It is 0 when nothing is free.
	Unusable float64
	// Weight is that of all gangs of the mix that were asked; 0 where none asks for the resource, and Unusable says nothing.
	Weight float64
}

// Fragmentation measures the resource against the mix; gangs of it that do not ask for the resource, or ask what the model does
// not cover, are left out. The limits of queues play no part. The measure is that of "Beware of Fragmentation" (USENIX ATC 2023),
// applied to gangs in place of single pods.
func (m *inventory) Fragmentation(resource corev1.ResourceName, mix []Drawn) Fragmentation {
	var f Fragmentation
	if at, known := m.index[resource]; known {
		for i := range m.nodes {
			f.Free += max(0, m.nodes[i].free[at])
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
		if room := a.room(freeOn); room >= d.Workers {
			usable = int64(room) * each
		}
		f.Unusable += d.Weight * (1 - float64(usable)/float64(f.Free))
	}
	if f.Weight > 0 {
		f.Unusable /= f.Weight
	}
	return f
}

// FragmentationOf is that of several resources together. What no gang of the mix asks for is free all the same, but plays no
// part in the share that is of no use.
func (m *inventory) FragmentationOf(resources []corev1.ResourceName, mix []Drawn) Fragmentation {
	var all Fragmentation
	var asked float64
	for _, name := range resources {
		f := m.Fragmentation(name, mix)
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

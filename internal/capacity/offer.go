package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Offer is how much of one device gangs of a queue could have now.
type Offer struct {
	// Room is what there is without anything giving way, and WithSurplus what there would be if all surplus left that gives way to a
	// gang of the queue.
	Room, WithSurplus Room
	// PerNode is the number of devices of the largest node.
	PerNode int64
}

// Room is how many workers could be placed: Free of one device each, or WholeNodes of [Offer.PerNode] devices.
type Room struct{ Free, WholeNodes int32 }

// OfferFor answers for a device on the nodes that the selector matches.
func (m *Model) OfferFor(queue string, device corev1.ResourceName, selector map[string]string) Offer {
	of := func(each int64) *Gang {
		return &Gang{Queue: queue, Workers: 1, Shape: Shape{
			Requests: Amounts{device: each}, NodeSelector: selector,
			// Nodes are often tainted by the name of their device, and pods that ask for it tolerate that.
			Tolerations: []corev1.Toleration{{Key: string(device), Operator: corev1.TolerationOpExists}},
		}}
	}
	one, o := of(1), Offer{}
	for _, n := range m.compile(&one.Shape).nodes {
		o.PerNode = max(o.PerNode, n.Allocatable[device])
	}
	room := func(m *Model) Room {
		r := Room{Free: m.Ask(one).Largest}
		if o.PerNode > 0 {
			r.WholeNodes = m.Ask(of(o.PerNode)).Largest
		}
		return r
	}
	o.Room = room(m)
	o.WithSurplus = o.Room
	leaves := m.takeableSurplus(one, func(types.NamespacedName) bool { return true })
	leaves = slices.DeleteFunc(leaves, func(p *Pod) bool { return p.Requests[device] == 0 })
	if len(leaves) > 0 {
		after := m.clone()
		after.removeSurplus(leaves)
		o.WithSurplus = room(after.Model)
	}
	return o
}

package capacity

import (
	corev1 "k8s.io/api/core/v1"
)

// Offer is how much of one device gangs of a queue could have now, without anything giving way.
type Offer struct {
	// Free is how many workers of one device could be placed.
	Free int32
	// WholeNodes is how many workers of PerNode devices could be placed. PerNode is the number of devices of the largest node.
	WholeNodes int32
	PerNode    int64
}

// OfferFor answers for a device on the nodes that the selector matches.
func (m *Model) OfferFor(queue string, device corev1.ResourceName, selector map[string]string) Offer {
	ask := func(each int64) (int32, []*node) {
		g := &Gang{Queue: queue, Workers: 1, Shape: Shape{
			Requests: Amounts{device: each}, NodeSelector: selector,
			Tolerations: []corev1.Toleration{{Key: string(device), Operator: corev1.TolerationOpExists}},
		}}
		a := m.compile(&g.Shape)
		return m.Ask(g).Largest, a.nodes
	}
	free, nodes := ask(1)
	o := Offer{Free: free}
	for _, n := range nodes {
		o.PerNode = max(o.PerNode, n.Allocatable[device])
	}
	if o.PerNode > 0 {
		o.WholeNodes, _ = ask(o.PerNode)
	}
	return o
}

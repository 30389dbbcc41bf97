package gang

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "volcano.sh/apis/pkg/apis/topology/v1alpha1"

	"github.com/tideline-io/tideline/internal/platform/topology"
)

// HyperNodeKind is Volcano's kind for nodes that are close to each other. A cluster need not have it.
var HyperNodeKind = topologyv1alpha1.SchemeGroupVersion.WithKind("HyperNode")

// NewHyperNode returns an empty HyperNode to read into.
func NewHyperNode() client.Object { return &topologyv1alpha1.HyperNode{} }

// NewHyperNodeList returns an empty list to read into.
func NewHyperNodeList() client.ObjectList { return &topologyv1alpha1.HyperNodeList{} }

// HyperNodesOf reads a list of HyperNodes.
func HyperNodesOf(list client.ObjectList) []topology.HyperNode {
	read, ok := list.(*topologyv1alpha1.HyperNodeList)
	if !ok {
		return nil
	}
	all := make([]topology.HyperNode, len(read.Items))
	for i := range read.Items {
		h := &read.Items[i]
		all[i] = topology.HyperNode{Name: h.Name, Tier: h.Spec.Tier}
		for j := range h.Spec.Members {
			all[i].Members = append(all[i].Members, memberOf(&h.Spec.Members[j]))
		}
	}
	return all
}

func memberOf(m *topologyv1alpha1.MemberSpec) topology.Member {
	exact := ""
	if m.Selector.ExactMatch != nil {
		exact = m.Selector.ExactMatch.Name
	}
	if m.Type == topologyv1alpha1.MemberTypeHyperNode {
		return topology.Member{HyperNode: exact}
	}
	of := topology.Member{Node: exact, Labels: m.Selector.LabelMatch}
	if m.Selector.RegexMatch != nil {
		of.Pattern = m.Selector.RegexMatch.Pattern
	}
	return of
}

// Closeness is how close the members of a gang must be to each other in the network.
type Closeness struct {
	// Hard is true if all must be in one HyperNode of tier Highest or lower. Otherwise they are placed in one of the lowest tier
	// that has room, or anywhere.
	Hard    bool
	Highest int
}

// networkTopology is the closeness in Volcano's words; nil for none.
func (c *Closeness) networkTopology() *schedulingv1beta1.NetworkTopologySpec {
	switch {
	case c == nil:
		return nil
	case !c.Hard:
		return &schedulingv1beta1.NetworkTopologySpec{Mode: schedulingv1beta1.SoftNetworkTopologyMode}
	}
	highest := c.Highest
	return &schedulingv1beta1.NetworkTopologySpec{Mode: schedulingv1beta1.HardNetworkTopologyMode, HighestTierAllowed: &highest}
}

// closenessOf reads a PodGroup's topology. unread names what of it is not understood; empty for nothing. A hard mode without
// a tier is none to Volcano.
func closenessOf(spec *schedulingv1beta1.PodGroupSpec) (c *Closeness, unread string) {
	for i := range spec.SubGroupPolicy {
		if spec.SubGroupPolicy[i].NetworkTopology != nil {
			unread = "a network topology of subgroups"
		}
	}
	switch t := spec.NetworkTopology; {
	case t == nil:
		return nil, unread
	case t.Mode == schedulingv1beta1.SoftNetworkTopologyMode:
		return &Closeness{}, unread
	case t.HighestTierAllowed != nil:
		return &Closeness{Hard: true, Highest: *t.HighestTierAllowed}, unread
	case t.HighestTierName != "":
		return nil, "a tier of HyperNodes by its name"
	}
	return nil, unread
}

// Package topology knows which nodes are close to each other in the network: Volcano's HyperNodes, whose tiers rise with the
// distance between their nodes.
//
//	tier 2            spine
//	                /       \
//	tier 1      rack-a     rack-b
//	            /   \       /   \
//	nodes      a0   a1     b0   b1
package topology

import (
	"cmp"
	"maps"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// HyperNode is one as it is written.
type HyperNode struct {
	Name    string
	Tier    int
	Members []Member
}

// Member is nodes, or another HyperNode, of a HyperNode. One field is set.
type Member struct {
	// HyperNode and Node are names. Pattern is a regular expression that is looked for in the names of nodes, and Labels selects
	// nodes.
	HyperNode, Node, Pattern string
	Labels                   *metav1.LabelSelector
}

// Domain is a HyperNode with all nodes that are in it, however deep, in order.
type Domain struct {
	Name  string
	Tier  int
	Nodes []string
}

// ResolveDomains resolves HyperNodes among nodes, which are given with their labels: the lowest tier first, then by name. A
// HyperNode that contains itself has the nodes that are reached before that. Members that do not exist count for nothing, as for
// Volcano (volcano.sh/volcano/pkg/scheduler/api/hyper_node_info.go).
func ResolveDomains(all []HyperNode, nodes map[string]map[string]string) []Domain {
	byName := make(map[string]*HyperNode, len(all))
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	domains := make([]Domain, 0, len(all))
	for i := range all {
		in := map[string]bool{}
		resolve(byName, nodes, &all[i], in, map[string]bool{})
		domains = append(domains, Domain{Name: all[i].Name, Tier: all[i].Tier, Nodes: slices.Sorted(maps.Keys(in))})
	}
	slices.SortFunc(domains, func(a, b Domain) int { return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Name, b.Name)) })
	return domains
}

// resolve adds the nodes of a HyperNode. seen are the HyperNodes that were reached already.
func resolve(all map[string]*HyperNode, nodes map[string]map[string]string, h *HyperNode, in, seen map[string]bool) {
	if h == nil || seen[h.Name] {
		return
	}
	seen[h.Name] = true
	for i := range h.Members {
		m := &h.Members[i]
		if m.HyperNode != "" {
			resolve(all, nodes, all[m.HyperNode], in, seen)
			continue
		}
		matches := m.matcher()
		for name, has := range nodes {
			if matches(name, has) {
				in[name] = true
			}
		}
	}
}

// matcher tells which nodes the member is. One that Volcano cannot read is none.
func (m *Member) matcher() func(name string, has map[string]string) bool {
	nothing := func(string, map[string]string) bool { return false }
	switch {
	case m.Node != "":
		return func(name string, _ map[string]string) bool { return name == m.Node }
	case m.Pattern != "":
		pattern, err := regexp.Compile(m.Pattern)
		if err != nil {
			return nothing
		}
		return func(name string, _ map[string]string) bool { return pattern.MatchString(name) }
	case m.Labels != nil:
		selector, err := metav1.LabelSelectorAsSelector(m.Labels)
		if err != nil || selector.Empty() {
			return nothing
		}
		return func(_ string, has map[string]string) bool { return selector.Matches(labels.Set(has)) }
	}
	return nothing
}

// DomainsAround are the domains that have all of the nodes, in their order; none for no nodes.
func DomainsAround(domains []Domain, nodes []string) []Domain {
	if len(nodes) == 0 {
		return nil
	}
	var around []Domain
	for _, d := range domains {
		if d.HasAll(nodes) {
			around = append(around, d)
		}
	}
	return around
}

// NodesOf are the nodes of the HyperNode of a name, if it is of that tier; none for any other.
func NodesOf(domains []Domain, tier int, name string) []string {
	for i := range domains {
		if domains[i].Name == name && domains[i].Tier == tier {
			return domains[i].Nodes
		}
	}
	return nil
}

// HasAll is true for a domain that has all of the nodes.
func (d *Domain) HasAll(nodes []string) bool {
	return !slices.ContainsFunc(nodes, func(name string) bool {
		_, has := slices.BinarySearch(d.Nodes, name)
		return !has
	})
}

// TopTier is the tier from which on a limit is none. Volcano thinks of one more HyperNode above all others, with every node.
func TopTier(domains []Domain) int {
	top := 1
	for i := range domains {
		top = max(top, domains[i].Tier+1)
	}
	return top
}

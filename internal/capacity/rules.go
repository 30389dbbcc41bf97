package capacity

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// A pod with rules about other pods (host ports, affinity, anti-affinity, spread) has room on a node only beside the right ones:
//
//	node's room  = what fits by resources; 0 beside a pod that keeps it out; at most 1 if it keeps its own kind out
//	domain's room = sum over its nodes, at most what the rule about domains leaves:
//	    apart    1
//	    spread   (least final count of any domain) + maxSkew - count
//	    together all of one domain; the scheduler chooses which, so the smallest that it could begin in counts
//
// However a scheduler fills domains under a spread, it ends at the same number: the domain with the least is full, or one more
// would fit there. TestRulesEndWhereAnyOrderEnds tries orders.

// rules are those of an ask against the pods that are on nodes.
type rules struct {
	kin *Kin
	// blockers keep the worker out of their domain. onNode are their pods by node: there may be many, and one node is asked about.
	blockers []blocker
	onNode   map[*node][]*Pod
	// helpers are the pods that the worker wants beside it; besides are the keys of the domains.
	helpers []*Pod
	besides []string
	// together is true for a worker that is wanted beside itself, so that the first of a gang may go anywhere.
	together bool
	spreads  []spreading
	// alone is true for workers of which a node takes one. aloneIn is the key of larger domains that take one; empty for none.
	alone   bool
	aloneIn string
	// nodeBound is true if one node's room does not depend on another's.
	nodeBound bool
	// known caches which domains pods that are placed in thought keep the worker out of.
	known map[*Kin][]string
}

// blocker is a pod that keeps workers out of its domain by a key; an empty key is its node.
type blocker struct {
	pod *Pod
	key string
}

// spreading is a spread with the pods that it counts.
type spreading struct {
	*Spread
	counted []*Pod
	// itself is true if the worker is among those who are counted.
	itself bool
	// eligible is true for nodes, by number, whose domains count.
	eligible []bool
}

// rulesOf reads the rules of a worker against the pods on nodes; nil if it has none, and no pod keeps it out.
func (m *inventory) rulesOf(s *Shape) *rules {
	k := s.Kin
	if !k.hasRules() && m.avoids.keyFor(k) == "" {
		return nil
	}
	// Workers of one gang want the same host ports, so a node takes one of them.
	r := &rules{kin: k, known: map[*Kin][]string{}, onNode: map[*node][]*Pod{}, nodeBound: k.isNodeBound(), alone: len(k.Ports) > 0}
	for i := range k.Apart {
		switch t := &k.Apart[i]; {
		case !t.meets(k):
		case t.Key == corev1.LabelHostname:
			r.alone = true
		default:
			r.aloneIn = t.Key
		}
	}
	// Only if all terms are about its own kind can the first of a gang begin without any other pod.
	r.together = len(k.Beside) > 0
	for i := range k.Beside {
		r.besides, r.together = append(r.besides, k.Beside[i].Key), r.together && k.Beside[i].meets(k)
	}
	for i := range k.Spread {
		r.spreads = append(r.spreads, spreading{
			Spread: &k.Spread[i], itself: k.Spread[i].meets(k), eligible: m.eligibleFor(s),
		})
	}
	for i := range m.pods {
		if p := &m.pods[i]; p.on != nil && p.Kin != nil {
			r.meet(p)
		}
	}
	return r
}

// meet reads what a pod on a node means to the rules.
func (r *rules) meet(p *Pod) {
	for _, key := range r.kin.conflict(p.Kin) {
		r.blockers, r.onNode[p.on] = append(r.blockers, blocker{p, key}), append(r.onNode[p.on], p)
		// A placed pod that keeps its rack to itself ties nodes together like a rule of the worker's own.
		r.nodeBound = r.nodeBound && (key == "" || key == corev1.LabelHostname)
	}
	if r.helps(p.Kin) {
		r.helpers = append(r.helpers, p)
	}
	for i := range r.spreads {
		if s := &r.spreads[i]; s.meets(p.Kin) {
			s.counted = append(s.counted, p)
		}
	}
}

// helps is true for a pod that all required affinities are about.
func (r *rules) helps(k *Kin) bool {
	// Kubernetes counts a pod for one affinity only if it matches all.
	return len(r.kin.Beside) > 0 && !slices.ContainsFunc(r.kin.Beside, func(t Term) bool { return !t.meets(k) })
}

// eligibleFor is true for the nodes, by number, whose domains count under a spread: taints play no part.
func (m *inventory) eligibleFor(s *Shape) []bool {
	all := make([]bool, len(m.nodes))
	var selectors []*nodeaffinity.NodeSelector
	if s.Affinity != nil {
		if selector, err := nodeaffinity.NewNodeSelector(s.Affinity); err == nil {
			selectors = append(selectors, selector)
		}
	}
	for i := range m.nodes {
		n := &m.nodes[i]
		all[i] = s.selectsNode(n, selectors)
		for at := range s.Kin.Spread {
			// A node counts for one spread only if it has the labels of all, as in Kubernetes.
			if _, has := n.Labels[s.Kin.Spread[at].Key]; !has {
				all[i] = false
			}
		}
	}
	return all
}

// domainsOf numbers the domains of nodes by a key, -1 for nodes that are in none. An empty key makes each node its own.
func (m *inventory) domainsOf(key string) []int {
	if known, is := m.domains[key]; is {
		return known
	}
	all, number := make([]int, len(m.nodes)), map[string]int{}
	for i := range m.nodes {
		value, has := m.nodes[i].Labels[key]
		if key == "" {
			value, has = m.nodes[i].Name, true
		}
		if !has {
			all[i] = -1
			continue
		}
		if _, known := number[value]; !known {
			number[value] = len(number)
		}
		all[i] = number[value]
	}
	m.domains[key] = all
	return all
}

// conflictsWith are the keys of the domains that workers placed in thought keep the worker out of.
func (r *rules) conflictsWith(k *Kin) []string {
	keys, known := r.known[k]
	if !known {
		keys = r.kin.conflict(k)
		r.known[k] = keys
	}
	return keys
}

// roomOn is how many workers a node takes, for an ask whose rules are about single nodes or that has none.
func (m *inventory) roomOn(a *ask, n *node, v view, limit int32) int32 {
	fits := a.countFitting(n, v.vector(n), limit)
	r := a.rules
	if r == nil || fits == 0 {
		return fits
	}
	if slices.ContainsFunc(r.onNode[n], func(p *Pod) bool { return !v.gone(p) }) {
		return 0
	}
	v.guests(func(g *guest) {
		if g.on == n.number && len(r.conflictsWith(g.kin)) > 0 {
			fits = 0
		}
	})
	if r.alone {
		fits = min(fits, 1)
	}
	return fits
}

// countRoom is how many workers fit on all nodes by a view.
func (m *inventory) countRoom(a *ask, v view) int32 {
	if a.rules == nil {
		return a.countAll(v.vector)
	}
	var n int64
	for _, here := range m.seatingOf(a, v).seats() {
		n += here
	}
	return int32(min(n, math.MaxInt32))
}

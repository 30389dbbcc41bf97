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

// marks are domains by key and number.
type marks map[string]map[int]bool

func (m marks) set(key string, domain int) {
	if m[key] == nil {
		m[key] = map[int]bool{}
	}
	m[key][domain] = true
}

// blocked are the domains that the worker is kept out of.
func (m *inventory) blocked(r *rules, v view) marks {
	all := marks{}
	block := func(key string, on int) {
		if domain := m.domainsOf(key)[on]; domain >= 0 {
			all.set(key, domain)
		}
	}
	for _, b := range r.blockers {
		if !v.gone(b.pod) {
			block(b.key, b.pod.on.number)
		}
	}
	v.guests(func(g *guest) {
		for _, key := range r.conflictsWith(g.kin) {
			block(key, g.on)
		}
	})
	return all
}

// wanted are the domains in which a pod is that the worker wants beside it; nil if there is none anywhere.
func (m *inventory) wanted(r *rules, v view) marks {
	var all marks
	mark := func(on int) {
		if all == nil {
			all = marks{}
		}
		for _, key := range r.besides {
			if domain := m.domainsOf(key)[on]; domain >= 0 {
				all.set(key, domain)
			}
		}
	}
	for _, p := range r.helpers {
		if !v.gone(p) {
			mark(p.on.number)
		}
	}
	v.guests(func(g *guest) {
		if r.helps(g.kin) {
			mark(g.on)
		}
	})
	return all
}

// seats is how many workers each of the ask's nodes would take in the largest gang that fits, in the order of its nodes.
func (m *inventory) seats(a *ask, v view) []int64 {
	room, r := m.roomByNode(a, v), a.rules
	switch {
	case r.aloneIn != "":
		// At most one of these limits domains: of a gang with more the model says ManyRules, so no order among them matters.
		limitDomains(a, room, m.domainsOf(r.aloneIn), func(int, int64) int64 { return 1 })
	case r.together && m.wanted(r, v) == nil:
		// None of its kind is placed, so the first may go anywhere, and binds the others to its domain.
		m.keepOne(a, room, r.besides[0])
	}
	for i := range r.spreads {
		if s := &r.spreads[i]; s.itself { // Among what limits domains there is at most one.
			m.spreadOut(a, room, s, v)
		}
	}
	return room
}

// roomByNode is how many workers each of the ask's nodes takes by itself, beside the pods that are there.
func (m *inventory) roomByNode(a *ask, v view) []int64 {
	r, room := a.rules, make([]int64, len(a.nodes))
	blocked, wanted := m.blocked(r, v), m.wanted(r, v)
	for i, n := range a.nodes {
		fits := int64(a.countFitting(n, v.vector(n), math.MaxInt32))
		for key, domains := range blocked {
			if domain := m.domainsOf(key)[n.number]; domain >= 0 && domains[domain] {
				fits = 0
			}
		}
		for _, key := range r.besides {
			domain := m.domainsOf(key)[n.number]
			// A worker that wants its own kind may be the first; one that wants others waits for them.
			if domain < 0 || wanted == nil && !r.together || wanted != nil && !wanted[key][domain] {
				fits = 0
			}
		}
		if r.alone {
			fits = min(fits, 1)
		}
		room[i] = fits
	}
	for i := range r.spreads {
		// Workers that the rule does not count change nothing for each other, so each node is judged by itself.
		if s := &r.spreads[i]; !s.itself {
			m.spreadOut(a, room, s, v)
		}
	}
	return room
}

// limitDomains cuts the room of nodes so that no domain takes more than most allows, given its number and its whole room.
func limitDomains(a *ask, room []int64, domains []int, most func(domain int, room int64) int64) {
	total := map[int]int64{}
	for i, n := range a.nodes {
		if domains[n.number] >= 0 {
			total[domains[n.number]] += room[i]
		}
	}
	left := make(map[int]int64, len(total))
	for domain, all := range total {
		left[domain] = min(all, max(0, most(domain, all)))
	}
	for i, n := range a.nodes {
		if domain := domains[n.number]; domain >= 0 {
			room[i] = min(room[i], left[domain])
			left[domain] -= room[i]
		}
	}
}

// keepOne leaves the room of one domain: of those that have any, the smallest, because the scheduler may begin in it.
func (m *inventory) keepOne(a *ask, room []int64, key string) {
	domains := m.domainsOf(key)
	chosen, least := -1, int64(math.MaxInt64)
	for domain, all := range roomByDomain(a, room, domains) {
		// By number among equals, because maps yield any order.
		if all > 0 && (all < least || all == least && domain < chosen) {
			chosen, least = domain, all
		}
	}
	limitDomains(a, room, domains, func(domain int, all int64) int64 {
		if domain == chosen {
			return all
		}
		return 0
	})
}

func roomByDomain(a *ask, room []int64, domains []int) map[int]int64 {
	total := map[int]int64{}
	for i, n := range a.nodes {
		if domain := domains[n.number]; domain >= 0 {
			total[domain] += room[i]
		}
	}
	return total
}

// mostTogether is how many workers fit into the best domain, for a gang that must be in one; 0 for any other.
func (m *inventory) mostTogether(a *ask, v view) (most int64) {
	if a.rules == nil || !a.rules.together || m.wanted(a.rules, v) != nil {
		return 0
	}
	room := m.roomByNode(a, v)
	for _, all := range roomByDomain(a, room, m.domainsOf(a.rules.besides[0])) {
		most = max(most, all)
	}
	return most
}

// spreadOut cuts the room of nodes to what a spread leaves.
func (m *inventory) spreadOut(a *ask, room []int64, s *spreading, v view) {
	domains, count := m.domainsOf(s.Key), map[int]int64{}
	for i, eligible := range s.eligible {
		if eligible {
			// A domain without such pods must be in the map: it has the least.
			count[domains[i]] += 0
		}
	}
	add := func(on int, n int64) {
		if s.eligible[on] {
			count[domains[on]] += n
		}
	}
	for _, p := range s.counted {
		// Kubernetes does not count pods that terminate.
		if !p.Leaving && !v.gone(p) {
			add(p.on.number, 1)
		}
	}
	v.guests(func(g *guest) {
		if s.meets(g.kin) {
			add(g.on, int64(g.count))
		}
	})
	for i, n := range a.nodes {
		if !s.eligible[n.number] {
			room[i] = 0
		}
	}
	total, least := roomByDomain(a, room, domains), int64(math.MaxInt64)
	for domain, have := range count {
		if s.itself {
			// A domain that is full stays at this number, and holds all the others to it.
			have += total[domain]
		}
		least = min(least, have)
	}
	// As in Kubernetes: domains that do not exist yet have none of the pods.
	if len(count) < int(s.MinDomains) {
		least = 0
	}
	limitDomains(a, room, domains, func(domain int, all int64) int64 {
		over := least + int64(s.MaxSkew) - count[domain]
		switch {
		case s.itself:
			return over
		case over < 0:
			// It adds nothing to what is counted, so a domain that is just at the limit takes it.
			return 0
		}
		return all
	})
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
	for _, here := range m.seats(a, v) {
		n += here
	}
	return int32(min(n, math.MaxInt32))
}

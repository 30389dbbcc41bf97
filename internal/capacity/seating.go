package capacity

import "math"

// seating is where workers with rules about other pods find a place by a view.
type seating struct {
	*inventory
	// rules are those of the worker; nil for none, and then only mostTogether may be asked.
	*rules
	worker *ask
	by     view
}

func (m *inventory) seatingOf(a *ask, by view) seating { return seating{m, a.rules, a, by} }

// seats is how many workers each of the ask's nodes would take in the largest gang that fits, in the order of its nodes.
func (s seating) seats() []int64 {
	room := s.roomByNode()
	switch {
	case s.aloneIn != "":
		// At most one of these limits domains: of a gang with more the model says ManyRules, so no order among them matters.
		s.limitDomains(room, s.domainsOf(s.aloneIn), func(int, int64) int64 { return 1 })
	case s.together && s.wanted() == nil:
		// None of its kind is placed, so the first may go anywhere, and binds the others to its domain.
		s.keepOne(room, s.besides[0])
	}
	for i := range s.spreads {
		if spread := &s.spreads[i]; spread.itself { // Among what limits domains there is at most one.
			s.spreadOut(room, spread)
		}
	}
	return room
}

// mostTogether is how many workers fit into the best domain, for a gang that must be in one; 0 for any other.
func (s seating) mostTogether() (most int64) {
	if s.rules == nil || !s.together || s.wanted() != nil {
		return 0
	}
	for _, all := range s.roomByDomain(s.roomByNode(), s.domainsOf(s.besides[0])) {
		most = max(most, all)
	}
	return most
}

// roomByNode is how many workers each of the ask's nodes takes by itself, beside the pods that are there.
func (s seating) roomByNode() []int64 {
	room := make([]int64, len(s.worker.nodes))
	blocked, wanted := s.blocked(), s.wanted()
	for i, n := range s.worker.nodes {
		fits := int64(s.worker.countFitting(n, s.by.vector(n), math.MaxInt32))
		for key, domains := range blocked {
			if domain := s.domainsOf(key)[n.number]; domain >= 0 && domains[domain] {
				fits = 0
			}
		}
		for _, key := range s.besides {
			domain := s.domainsOf(key)[n.number]
			// A worker that wants its own kind may be the first; one that wants others waits for them.
			if domain < 0 || wanted == nil && !s.together || wanted != nil && !wanted[key][domain] {
				fits = 0
			}
		}
		if s.alone {
			fits = min(fits, 1)
		}
		room[i] = fits
	}
	for i := range s.spreads {
		// Workers that the rule does not count change nothing for each other, so each node is judged by itself.
		if spread := &s.spreads[i]; !spread.itself {
			s.spreadOut(room, spread)
		}
	}
	return room
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
func (s seating) blocked() marks {
	all := marks{}
	block := func(key string, on int) {
		if domain := s.domainsOf(key)[on]; domain >= 0 {
			all.set(key, domain)
		}
	}
	for _, b := range s.blockers {
		if !s.by.gone(b.pod) {
			block(b.key, b.pod.on.number)
		}
	}
	s.by.guests(func(g *guest) {
		for _, key := range s.conflictsWith(g.kin) {
			block(key, g.on)
		}
	})
	return all
}

// wanted are the domains in which a pod is that the worker wants beside it; nil if there is none anywhere.
func (s seating) wanted() marks {
	var all marks
	mark := func(on int) {
		if all == nil {
			all = marks{}
		}
		for _, key := range s.besides {
			if domain := s.domainsOf(key)[on]; domain >= 0 {
				all.set(key, domain)
			}
		}
	}
	for _, p := range s.helpers {
		if !s.by.gone(p) {
			mark(p.on.number)
		}
	}
	s.by.guests(func(g *guest) {
		if s.helps(g.kin) {
			mark(g.on)
		}
	})
	return all
}

// limitDomains cuts the room of nodes so that no domain takes more than most allows, given its number and its whole room.
func (s seating) limitDomains(room []int64, domains []int, most func(domain int, room int64) int64) {
	total := s.roomByDomain(room, domains)
	left := make(map[int]int64, len(total))
	for domain, all := range total {
		left[domain] = min(all, max(0, most(domain, all)))
	}
	for i, n := range s.worker.nodes {
		if domain := domains[n.number]; domain >= 0 {
			room[i] = min(room[i], left[domain])
			left[domain] -= room[i]
		}
	}
}

// keepOne leaves the room of one domain: of those that have any, the smallest, because the scheduler may begin in it.
func (s seating) keepOne(room []int64, key string) {
	domains := s.domainsOf(key)
	chosen, least := -1, int64(math.MaxInt64)
	for domain, all := range s.roomByDomain(room, domains) {
		// By number among equals, because maps yield any order.
		if all > 0 && (all < least || all == least && domain < chosen) {
			chosen, least = domain, all
		}
	}
	s.limitDomains(room, domains, func(domain int, all int64) int64 {
		if domain == chosen {
			return all
		}
		return 0
	})
}

func (s seating) roomByDomain(room []int64, domains []int) map[int]int64 {
	total := map[int]int64{}
	for i, n := range s.worker.nodes {
		if domain := domains[n.number]; domain >= 0 {
			total[domain] += room[i]
		}
	}
	return total
}

// spreadOut cuts the room of nodes to what a spread leaves.
func (s seating) spreadOut(room []int64, spread *spreading) {
	domains, count := s.domainsOf(spread.Key), map[int]int64{}
	for i, eligible := range spread.eligible {
		if eligible {
			// A domain without such pods must be in the map: it has the least.
			count[domains[i]] += 0
		}
	}
	add := func(on int, n int64) {
		if spread.eligible[on] {
			count[domains[on]] += n
		}
	}
	for _, p := range spread.counted {
		// Kubernetes does not count pods that terminate.
		if !p.Leaving && !s.by.gone(p) {
			add(p.on.number, 1)
		}
	}
	s.by.guests(func(g *guest) {
		if spread.meets(g.kin) {
			add(g.on, int64(g.count))
		}
	})
	for i, n := range s.worker.nodes {
		if !spread.eligible[n.number] {
			room[i] = 0
		}
	}
	total, least := s.roomByDomain(room, domains), int64(math.MaxInt64)
	for domain, have := range count {
		if spread.itself {
			// A domain that is full stays at this number, and holds all the others to it.
			have += total[domain]
		}
		least = min(least, have)
	}
	// As in Kubernetes: domains that do not exist yet have none of the pods.
	if len(count) < int(spread.MinDomains) {
		least = 0
	}
	s.limitDomains(room, domains, func(domain int, all int64) int64 {
		over := least + int64(spread.MaxSkew) - count[domain]
		switch {
		case spread.itself:
			return over
		case over < 0:
			// It adds nothing to what is counted, so a domain that is just at the limit takes it.
			return 0
		}
		return all
	})
}

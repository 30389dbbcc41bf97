package capacity

import "slices"

// Each set of rules about other pods is held against all pods on nodes, and any user may submit jobs that differ in theirs. So
// no more sets than these are judged at once.
const mostRules, mostRulesOfNamespace = 64, 16

// LimitRules has the model cover of gangs with rules about other pods only the oldest, until they have as many different sets of
// rules as are judged at once: the others count as unmodelled. The same gangs in any order give the same.
func LimitRules(gangs []*Gang) {
	ruled := slices.DeleteFunc(slices.Clone(gangs), func(g *Gang) bool { return len(g.rulesKeys()) == 0 })
	slices.SortStableFunc(ruled, compareAge)
	judged, of := map[string]bool{}, map[string]int{}
	for _, g := range ruled {
		keys := slices.DeleteFunc(g.rulesKeys(), func(key string) bool { return judged[key] })
		if len(judged)+len(keys) > mostRules || of[g.Job.Namespace]+len(keys) > mostRulesOfNamespace {
			g.Shape.Unmodelled = CrowdedRules
			continue
		}
		for _, key := range keys {
			judged[key] = true
		}
		of[g.Job.Namespace] += len(keys)
	}
}

// rulesKeys are the different sets of rules of the gang's workers, of those that the model covers.
func (g *Gang) rulesKeys() (keys []string) {
	if g.beyondModel() != "" {
		return nil
	}
	add := func(s *Shape) {
		if key := s.Kin.rulesKey(); key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	add(&g.Shape)
	for i := range g.Apart {
		add(&g.Apart[i])
	}
	for i := range g.Others {
		add(&g.Others[i].Shape)
	}
	return keys
}

// compareAge orders gangs by age alone: a tier must not take the answers of those who have waited longer.
func compareAge(g, o *Gang) int {
	if c := g.Created.Compare(o.Created); c != 0 {
		return c
	}
	return g.comesBefore(o)
}

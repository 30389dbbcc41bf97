package training

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// within says where the next surplus workers go, of a job whose steps are each within one node or HyperNode.
type within struct {
	g *grower
	// have is how much surplus there is within each domain, or will be, by name; nil for a job whose steps may be anywhere.
	have map[string]int32
}

func (g *grower) newWithin() within {
	if g.Spec.Elasticity.StepWithin == nil {
		return within{g: g}
	}
	w := within{g, map[string]int32{}}
	for _, stay := range g.surplusByDomain() {
		w.have[stay.name] = int32(stay.waiting + len(stay.placed))
	}
	return w
}

// next is the first domain that has room for more; false if none has. A job whose steps may be anywhere needs no domain.
func (w within) next() (*trainingpod.StepDomain, bool) {
	if w.have == nil {
		return nil, true
	}
	for i := range w.g.StepDomains {
		if d := &w.g.StepDomains[i]; w.have[d.Name] < d.Workers && len(d.Hosts) > 0 {
			return d, true
		}
	}
	return nil, false
}

// take has a new worker be created within a domain.
func (w within) take(i int32, d *trainingpod.StepDomain) {
	if d == nil {
		return
	}
	w.have[d.Name]++
	if w.g.d.Blueprint.StepDomains == nil {
		w.g.d.Blueprint.StepDomains = map[int32]trainingpod.StepDomain{}
	}
	w.g.d.Blueprint.StepDomains[i] = *d
}

// steps are the surplus within one domain: workers that stay and have a node, by rising index, and how many wait for one.
type steps struct {
	name    string
	placed  []*podstate.Worker
	waiting int
}

// lacks is how many workers would make its steps whole.
func (s *steps) lacks(step int32) int32 { return (step - int32(len(s.placed)+s.waiting)%step) % step }

// surplusByDomain lists the surplus by the domains that its steps are within, by name.
func (g *grower) surplusByDomain() []steps {
	all := map[string]*steps{}
	in := func(name string) *steps {
		if all[name] == nil {
			all[name] = &steps{name: name}
		}
		return all[name]
	}
	for _, w := range g.placedSurplus() {
		in(w.StepDomain).placed = append(in(w.StepDomain).placed, w)
	}
	for w := range g.AttemptWorkers() {
		if g.IsSurplus(w.Index) && !w.Scheduled && !w.Terminating && !w.HasEnded() {
			in(w.StepDomain).waiting++
		}
	}
	sorted := make([]steps, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, *all[name])
	}
	return sorted
}

// leaveRemainders is leaveRemainder for a job whose steps are each within one domain. Workers that were lost and are created
// again go where the fewest are missing.
func (g *grower) leaveRemainders(step int32) {
	all := g.surplusByDomain()
	back := g.countReturning()
	for i := range all {
		back -= int32(all[i].waiting)
	}
	slices.SortStableFunc(all, func(a, b steps) int { return cmp.Compare(a.lacks(step), b.lacks(step)) })
	for i := range all {
		switch lacks := all[i].lacks(step); {
		case lacks == 0:
		case lacks <= back:
			back -= lacks
		default:
			if !g.leave(all[i].placed, step-lacks) {
				return
			}
		}
	}
}

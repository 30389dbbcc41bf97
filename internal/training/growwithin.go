package training

import (
	"maps"
	"slices"

	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Of a job whose steps are each within one node or HyperNode the verdict says where it may have how much surplus, in whole steps:
//
//	verdict     node a: 4, node b: 8
//	it has      node a: 3, node b: 4, node c: 2
//	it creates  the rest of the step on a, then a step on b; what is on c makes no step, and leaves

// domainSurplus is the surplus within one node or HyperNode: workers that stay and have a node, by rising index, and those that
// wait for one. may is how much the verdict allows there.
type domainSurplus struct {
	name            string
	placed, waiting []*podstate.Worker
	may             int32
}

func (d *domainSurplus) has() int32 { return int32(len(d.placed) + len(d.waiting)) }

// rounded is how much it has once what is there makes whole steps: with the rest of a step if there is room for it, else without.
func (d *domainSurplus) rounded(step int32) int32 {
	beyond := d.has() % step
	if up := d.has() - beyond + step; beyond > 0 && up <= d.may {
		return up
	}
	return d.has() - beyond
}

// surplusByDomain lists the surplus by domain: those of the verdict in its order, then all others by name.
func (g *grower) surplusByDomain() []*domainSurplus {
	all := make([]*domainSurplus, 0, len(g.Verdict.StepDomains))
	known := map[string]*domainSurplus{}
	for _, d := range g.Verdict.StepDomains {
		known[d.Name] = &domainSurplus{name: d.Name, may: d.Workers}
		all = append(all, known[d.Name])
	}
	others := map[string]*domainSurplus{}
	in := func(w *podstate.Worker) *domainSurplus {
		if d := known[w.StepDomain]; d != nil {
			return d
		}
		if others[w.StepDomain] == nil {
			others[w.StepDomain] = &domainSurplus{name: w.StepDomain}
		}
		return others[w.StepDomain]
	}
	for _, w := range g.placedSurplus() {
		in(w).placed = append(in(w).placed, w)
	}
	for w := range g.AttemptWorkers() {
		if g.IsSurplus(w.Index) && !w.Scheduled && !w.Terminating && !w.HasEnded() && !g.deleting[w.UID] {
			in(w).waiting = append(in(w).waiting, w)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		all = append(all, others[name])
	}
	return all
}

// newStep is workers that make a step whole within a node or HyperNode.
type newStep struct {
	within  trainingpod.StepDomain
	workers int32
}

// newSteps are those that the job lacks of its target: the rest of steps that lack workers first, then whole ones.
func (g *grower) newSteps(target int32) (steps []newStep) {
	step, all, total := g.Spec.Elasticity.Step, g.surplusByDomain(), int32(0)
	add := func(d *domainSurplus, workers int32) {
		if hosts := g.StepHosts[d.name]; len(hosts) > 0 && workers > 0 {
			steps = append(steps, newStep{trainingpod.StepDomain{Name: d.name, Hosts: hosts}, workers})
		}
	}
	for _, d := range all {
		total += d.rounded(step)
		add(d, d.rounded(step)-d.has())
	}
	for _, d := range all {
		for has := d.rounded(step); has+step <= d.may && total+step <= target; has, total = has+step, total+step {
			add(d, step)
		}
	}
	return steps
}

// freeIndices are those of surplus that may be created, or may be once workers that gave way may return.
func (g *grower) freeIndices() (free []int32) {
	for i := g.Minimum; i < g.Maximum; i++ {
		if g.mayCreate(i) {
			free = append(free, i)
		}
	}
	return free
}

// missingWithin is how many workers newSteps have, as far as there are indices for whole ones.
func (g *grower) missingWithin(target int32) (n int32) {
	free := int32(len(g.freeIndices()))
	for _, s := range g.newSteps(target) {
		if n+s.workers > free {
			break
		}
		n += s.workers
	}
	return n
}

// createWithin creates the workers of newSteps, as far as there are indices for whole ones.
func (g *grower) createWithin(target int32) {
	free := g.freeIndices()
	for _, s := range g.newSteps(target) {
		if int(s.workers) > len(free) {
			return
		}
		for _, i := range free[:s.workers] {
			g.createMissing(i, i+1)
			if g.d.Blueprint.StepDomains == nil {
				g.d.Blueprint.StepDomains = map[int32]trainingpod.StepDomain{}
			}
			g.d.Blueprint.StepDomains[i] = s.within
		}
		free = free[s.workers:]
	}
}

// withdrawStranded deletes surplus that waits within a node or HyperNode that has no room for it any more: it could not be placed
// elsewhere. It reports whether there is any.
func (g *grower) withdrawStranded() (withdrawn bool) {
	if g.Spec.Elasticity.StepWithin == nil || g.Verdict.StepDomains == nil {
		return false
	}
	for _, d := range g.surplusByDomain() {
		if d.has() <= d.may {
			continue
		}
		for _, w := range d.waiting {
			g.deleteWorker(w)
			withdrawn = true
		}
	}
	return withdrawn
}

// leaveRemainders is leaveRemainder for a job whose steps are each within one domain: the rest of a step comes only if the
// verdict has room for it there.
func (g *grower) leaveRemainders(step int32) {
	if g.Verdict.StepDomains == nil {
		return // It is not known yet where there is room.
	}
	returns := g.Growth().RestartLeft() > 0 || g.Growth().PauseLeft() <= 0
	for _, d := range g.surplusByDomain() {
		if beyond := d.has() % step; beyond > 0 && (!returns || d.rounded(step) < d.has()) {
			if !g.leave(d.placed, beyond) {
				return
			}
		}
	}
}

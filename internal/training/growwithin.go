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

// domainSurplus is the surplus within one node or HyperNode: workers that stay and have a node, by rising index, those that wait
// for one, and how many this decision creates. may is how much the verdict allows there.
type domainSurplus struct {
	name            string
	placed, waiting []*podstate.Worker
	created, may    int32
	// completes is true if the rest of a step that lacks workers is to come.
	completes bool
}

func (d *domainSurplus) has() int32 { return int32(len(d.placed)+len(d.waiting)) + d.created }

// lacks is how many workers would make its steps whole.
func (d *domainSurplus) lacks(step int32) int32 { return (step - d.has()%step) % step }

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
	for _, i := range g.d.CreateWorkers {
		if d := known[g.d.Blueprint.StepDomains[i].Name]; d != nil && g.IsSurplus(i) {
			d.created++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		all = append(all, others[name])
	}
	return all
}

// completeSteps chooses the steps whose rest is to come: where the verdict has room for it, as far as the target allows. It
// returns the surplus by domain, and how much of it is whole steps then.
func (g *grower) completeSteps(target int32) (all []*domainSurplus, total int32) {
	step := g.Spec.Elasticity.Step
	all = g.surplusByDomain()
	for _, d := range all {
		total += d.has() - d.has()%step
	}
	for _, d := range all {
		if lacks := d.lacks(step); lacks > 0 && d.has()+lacks <= d.may && total+step <= target {
			d.completes = true
			total += step
		}
	}
	return all, total
}

// newStep is workers that make a step whole within a node or HyperNode.
type newStep struct {
	within  trainingpod.StepDomain
	workers int32
}

// newSteps are those that the job lacks of its target: the rest of steps that lack workers first, then whole ones.
func (g *grower) newSteps(target int32) (steps []newStep) {
	step := g.Spec.Elasticity.Step
	all, total := g.completeSteps(target)
	add := func(d *domainSurplus, workers int32) {
		if hosts := g.StepHosts[d.name]; len(hosts) > 0 {
			steps = append(steps, newStep{trainingpod.StepDomain{Name: d.name, Hosts: hosts}, workers})
		}
	}
	for _, d := range all {
		if d.completes {
			add(d, d.lacks(step))
		}
	}
	for _, d := range all {
		if d.lacks(step) > 0 && !d.completes {
			continue
		}
		for has := d.has() + d.lacks(step); has+step <= d.may && total+step <= target; has, total = has+step, total+step {
			add(d, step)
		}
	}
	return steps
}

// freeIndices are those of surplus that may be created, or may be once workers that gave way may return.
func (g *grower) freeIndices() (free []int32) {
	for i := g.Minimum; i < g.Maximum; i++ {
		if g.mayCreate(i) && !g.creates(i) {
			free = append(free, i)
		}
	}
	return free
}

// creates is true for a worker that this decision creates. They are listed by rising index.
func (g *grower) creates(i int32) bool {
	_, listed := slices.BinarySearch(g.d.CreateWorkers, i)
	return listed
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

// withdrawStranded deletes surplus that waits within a node or HyperNode that has no room for it any more, since it could not be
// placed elsewhere, and all that waits if the job has more whole steps than its target. It reports whether there is any.
func (g *grower) withdrawStranded(target int32) (withdrawn bool) {
	if g.Verdict.StepDomains == nil {
		return false
	}
	all, total := g.completeSteps(target)
	for _, d := range all {
		if d.has() <= d.may && total <= target {
			continue
		}
		for _, w := range d.waiting {
			g.deleteWorker(w)
			withdrawn = true
		}
	}
	return withdrawn
}

// leaveRemainders is leaveRemainder for a job whose steps are each within one domain. Workers of a step whose rest is not to come
// leave, and none is awaited for it any more.
func (g *grower) leaveRemainders(step int32) {
	if g.Verdict.StepDomains == nil || g.IsGated() && !g.IsAdmitted() {
		return // It is not known yet how much there may be, and where.
	}
	pauses := g.Growth().RestartLeft() <= 0 && g.Growth().PauseLeft() > 0
	all, _ := g.completeSteps(g.Growth().SurplusTarget())
	for _, d := range all {
		if d.lacks(step) == 0 || d.completes && !pauses {
			continue
		}
		for _, w := range d.waiting {
			g.deleteWorker(w)
		}
		if !g.leave(d.placed, int32(len(d.placed))%step) {
			return
		}
	}
}

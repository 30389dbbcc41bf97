package capacity

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Some jobs change their size by several workers at once: their minimum and a multiple of a step can train. When some of their
// surplus leaves, the rest of that step is of no use, and leaves too:
//
//	fewest victims for the gang -> the first job's part of them, and the rest of its step -> fewest victims with those gone -> ...
//	-> of each job, from the last in the order of victims: the fewest steps with which the gang still fits
//
// Each job then gives the least that it can beside the others. TestWholeStepsLeave holds that to all subsets. The sum over
// several jobs is not always the smallest: that would be a choice among all combinations of their steps.
//
// Of a job whose steps are each within one node or HyperNode, what is within one of these counts by itself, like a job.

// stepper is who gives whole steps: a job, or what it has within one node or HyperNode.
type stepper struct {
	types.NamespacedName

	within string
}

func (s *Surplus) stepper() stepper { return stepper{s.Job, s.Within} }

// stepping is the surplus of a stepper of a job that changes its size by several workers at once.
type stepping struct {
	step int32
	// staying is how many surplus workers are not leaving. Those on nodes that are not ready are about to be lost, and do not count.
	staying int32
}

// countStep counts a surplus worker that stays.
func (m *Model) countStep(s *Surplus) {
	if s.Step <= 1 {
		return
	}
	if m.steps == nil {
		m.steps = map[stepper]stepping{}
	}
	m.steps[s.stepper()] = stepping{step: s.Step, staying: m.steps[s.stepper()].staying + 1}
}

// atLeast is the least number of workers, n or more, after whose leaving whole steps stay.
func (s stepping) atLeast(n int32) int32 {
	if s.step <= 1 || n == 0 {
		return n // The job changes its size by single workers, or keeps it.
	}
	return n + max(0, s.staying-n)%s.step
}

// atMost is the largest such number, n or fewer.
func (s stepping) atMost(n int32) int32 {
	if s.step <= 1 {
		return n
	}
	if beyond := max(0, s.staying-n) % s.step; beyond > 0 {
		n -= s.step - beyond
	}
	return max(0, n)
}

// unclaimedSteps are the steps without surplus that leaves for some gang already.
func (m *Model) unclaimedSteps() map[stepper]stepping {
	if len(m.steps) == 0 || len(m.claimed) == 0 {
		return m.steps
	}
	left := maps.Clone(m.steps)
	for i := range m.nodes {
		for _, p := range m.surplus[i] {
			if s, stepped := left[p.Surplus.stepper()]; stepped && m.claimed[p.Surplus.UID] {
				s.staying--
				left[p.Surplus.stepper()] = s
			}
		}
	}
	return left
}

// trimToSteps drops surplus that no gang can have, because the rest of its step must stay. The pods are in the order of victims,
// and the last of each stepper are dropped.
func trimToSteps(pods []*Pod, steps map[stepper]stepping) []*Pod {
	if len(steps) == 0 {
		return pods
	}
	most := map[stepper]int32{}
	for _, p := range pods {
		most[p.Surplus.stepper()]++
	}
	for by, n := range most {
		most[by] = steps[by].atMost(n)
	}
	return slices.DeleteFunc(pods, func(p *Pod) bool {
		by := p.Surplus.stepper()
		most[by]--
		return most[by] < 0
	})
}

// fewest are the fewest pods of surplus that make room for the gang, whatever their jobs can do with the rest.
func (s selection) fewest() []*Pod {
	if len(s.g.Apart) > 0 {
		return s.ofShapes()
	}
	rules := s.worker.rules
	if rules != nil && !rules.nodeBound {
		// A node's gain depends on what leaves elsewhere, so they are few, and each is needed, but they are not always the fewest.
		return s.withoutUnneeded(s.first())
	}
	chosen := s.cheapest()
	if rules != nil && !s.fitsWithout(s.newCrowd(chosen)) {
		return nil
	}
	return chosen
}

// mostWithout is of how many jobs, and without how many steppers, a choice of steps is tried again.
const mostWithout = 8

// wholeSteps are few pods of surplus that make room for the gang and leave whole steps of each stepper.
func (s selection) wholeSteps() []*Pod {
	fewest := s.fewest()
	if !slices.ContainsFunc(fewest, func(p *Pod) bool { return s.unclaimed[p.Surplus.stepper()].step > 1 }) {
		return fewest
	}
	chosen := s.completeSteps(fewest)
	// What serves as single workers may be dear as whole steps, so the choice is tried without each of its steppers.
	all := steppersOf(chosen)
	jobs := map[types.NamespacedName]bool{}
	for _, by := range all {
		jobs[by.NamespacedName] = true
	}
	if len(jobs) > mostWithout {
		return chosen
	}
	rank := s.rank
	for _, by := range all[:min(len(all), mostWithout)] {
		without := s.among(maps.Clone(rank))
		maps.DeleteFunc(without.rank, func(p *Pod, _ int64) bool { return p.Surplus.stepper() == by })
		other := without.completeSteps(without.fewest())
		if len(other) > 0 && len(other) < len(chosen) {
			chosen, rank = other, without.rank
		}
	}
	return chosen
}

// completeSteps adds to the fewest victims the rest of their steps, and drops what is not needed then; nil if none would do.
func (s selection) completeSteps(fewest []*Pod) []*Pod {
	var chosen []*Pod
	after := s.clone()
	rest := s.in(after, s.g).among(maps.Clone(s.rank))
	for next := fewest; len(next) > 0; next = rest.fewest() {
		// All that are whole steps already, or else one stepper with the rest of its step: that may be what the gang would take of
		// others.
		var more []*Pod
		for _, by := range steppersOf(next) {
			own, have := by.among(next), len(by.among(chosen))
			if n := int(s.unclaimed[by].atLeast(int32(have + len(own)))); n == have+len(own) {
				more = append(more, own...)
			}
		}
		if by := next[0].Surplus.stepper(); len(more) == 0 {
			have := len(by.among(chosen))
			more = by.among(next)
			n := int(s.unclaimed[by].atLeast(int32(have + len(more))))
			more = completeStep(more, slices.Collect(maps.Keys(rest.rank)), n-have)
		}
		chosen = append(chosen, more...)
		after.removeSurplus(more)
		for _, p := range more {
			delete(rest.rank, p)
		}
	}
	if !s.fitsWithout(s.newCrowd(chosen)) {
		return nil
	}
	return s.spareSteps(chosen)
}

// steppersOf are the steppers of pods, each once, in the order of the first pod of each.
func steppersOf(pods []*Pod) []stepper {
	var all []stepper
	for _, p := range pods {
		if !slices.Contains(all, p.Surplus.stepper()) {
			all = append(all, p.Surplus.stepper())
		}
	}
	return all
}

// spareSteps drops steps without which the gang fits as well, of the steppers that come last in the order of victims first.
func (s selection) spareSteps(chosen []*Pod) []*Pod {
	slices.SortFunc(chosen, comparePods)
	judged := map[stepper]bool{}
	for _, last := range slices.Backward(slices.Clone(chosen)) {
		by := last.Surplus.stepper()
		if judged[by] {
			continue
		}
		judged[by] = true
		own := by.among(chosen)
		others := slices.DeleteFunc(slices.Clone(chosen), func(p *Pod) bool { return p.Surplus.stepper() == by })
		after := s.clone()
		after.removeSurplus(others)
		var needed []*Pod
		if rest := s.in(after, s.g).among(rankOf(own)); !rest.fitsWithout(rest.newCrowd(nil)) {
			needed = rest.fewest()
			if len(needed) == 0 {
				continue // Without a choice that is known to do, all of them leave.
			}
		}
		if n := s.unclaimed[by].atLeast(int32(len(needed))); int(n) < len(own) {
			chosen = slices.Concat(others, completeStep(needed, own, int(n)))
		}
	}
	slices.SortFunc(chosen, comparePods)
	return chosen
}

// completeStep adds surplus of the same stepper to some of its pods, in the order of victims, until they are n.
func completeStep(some, of []*Pod, n int) []*Pod {
	if len(some) == 0 {
		return nil
	}
	of = some[0].Surplus.stepper().among(of)
	slices.SortFunc(of, comparePods)
	some = slices.Clone(some)
	for _, p := range of {
		if len(some) < n && !slices.Contains(some, p) {
			some = append(some, p)
		}
	}
	return some
}

// among are those of the pods that are the stepper's.
func (s stepper) among(pods []*Pod) []*Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *Pod) bool { return p.Surplus.stepper() != s })
}

// rankOf ranks pods that are in the order of victims.
func rankOf(pods []*Pod) map[*Pod]int64 {
	rank := make(map[*Pod]int64, len(pods))
	for i, p := range pods {
		rank[p] = int64(i)
	}
	return rank
}

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

// stepping is the surplus of a job that changes its size by several workers at once.
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
		m.steps = map[types.NamespacedName]stepping{}
	}
	m.steps[s.Job] = stepping{step: s.Step, staying: m.steps[s.Job].staying + 1}
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
func (m *Model) unclaimedSteps() map[types.NamespacedName]stepping {
	if len(m.steps) == 0 || len(m.claimed) == 0 {
		return m.steps
	}
	left := maps.Clone(m.steps)
	for i := range m.nodes {
		for _, p := range m.surplus[i] {
			if s, stepped := left[p.Surplus.Job]; stepped && m.claimed[p.Surplus.UID] {
				s.staying--
				left[p.Surplus.Job] = s
			}
		}
	}
	return left
}

// trimToSteps drops surplus that no gang can have, because the rest of its step must stay. The pods are in the order of victims,
// and the last of each job are dropped.
func trimToSteps(pods []*Pod, steps map[types.NamespacedName]stepping) []*Pod {
	if len(steps) == 0 {
		return pods
	}
	most := map[types.NamespacedName]int32{}
	for _, p := range pods {
		most[p.Surplus.Job]++
	}
	for job, n := range most {
		most[job] = steps[job].atMost(n)
	}
	return slices.DeleteFunc(pods, func(p *Pod) bool {
		most[p.Surplus.Job]--
		return most[p.Surplus.Job] < 0
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

// mostWithout is without how many jobs a choice of steps is tried again.
const mostWithout = 8

// wholeSteps are few pods of surplus that make room for the gang and leave whole steps of each job.
func (s selection) wholeSteps() []*Pod {
	fewest := s.fewest()
	if !slices.ContainsFunc(fewest, func(p *Pod) bool { return s.unclaimed[p.Surplus.Job].step > 1 }) {
		return fewest
	}
	chosen := s.completeSteps(fewest)
	// What serves as single workers may be dear as whole steps, so the choice is tried without each of its jobs.
	jobs := jobsOf(chosen)
	if len(jobs) > mostWithout {
		return chosen
	}
	rank := s.rank
	for _, job := range jobs {
		without := s.among(maps.Clone(rank))
		maps.DeleteFunc(without.rank, func(p *Pod, _ int64) bool { return p.Surplus.Job == job })
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
		// All that are whole steps already, or else one job with the rest of its step: that may be what the gang would take of others.
		var more []*Pod
		for _, job := range jobsOf(next) {
			own, have := ofJob(next, job), len(ofJob(chosen, job))
			if n := int(s.unclaimed[job].atLeast(int32(have + len(own)))); n == have+len(own) {
				more = append(more, own...)
			}
		}
		if job := next[0].Surplus.Job; len(more) == 0 {
			have := len(ofJob(chosen, job))
			more = ofJob(next, job)
			n := int(s.unclaimed[job].atLeast(int32(have + len(more))))
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

// jobsOf are the jobs of pods, each once, in the order of its first pod.
func jobsOf(pods []*Pod) []types.NamespacedName {
	var all []types.NamespacedName
	for _, p := range pods {
		if !slices.Contains(all, p.Surplus.Job) {
			all = append(all, p.Surplus.Job)
		}
	}
	return all
}

// spareSteps drops steps without which the gang fits as well, of the jobs that come last in the order of victims first.
func (s selection) spareSteps(chosen []*Pod) []*Pod {
	slices.SortFunc(chosen, comparePods)
	judged := map[types.NamespacedName]bool{}
	for _, last := range slices.Backward(slices.Clone(chosen)) {
		job := last.Surplus.Job
		if judged[job] {
			continue
		}
		judged[job] = true
		own := ofJob(chosen, job)
		others := slices.DeleteFunc(slices.Clone(chosen), func(p *Pod) bool { return p.Surplus.Job == job })
		after := s.clone()
		after.removeSurplus(others)
		var needed []*Pod
		if rest := s.in(after, s.g).among(rankOf(own)); !rest.fitsWithout(rest.newCrowd(nil)) {
			needed = rest.fewest()
			if len(needed) == 0 {
				continue // Without a choice that is known to do, all of them leave.
			}
		}
		if n := s.unclaimed[job].atLeast(int32(len(needed))); int(n) < len(own) {
			chosen = slices.Concat(others, completeStep(needed, own, int(n)))
		}
	}
	slices.SortFunc(chosen, comparePods)
	return chosen
}

// completeStep adds surplus of the same job to some of its pods, in the order of victims, until they are n.
func completeStep(some, of []*Pod, n int) []*Pod {
	if len(some) == 0 {
		return nil
	}
	of = ofJob(of, some[0].Surplus.Job)
	slices.SortFunc(of, comparePods)
	some = slices.Clone(some)
	for _, p := range of {
		if len(some) < n && !slices.Contains(some, p) {
			some = append(some, p)
		}
	}
	return some
}

func ofJob(pods []*Pod, job types.NamespacedName) []*Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *Pod) bool { return p.Surplus.Job != job })
}

// rankOf ranks pods that are in the order of victims.
func rankOf(pods []*Pod) map[*Pod]int64 {
	rank := make(map[*Pod]int64, len(pods))
	for i, p := range pods {
		rank[p] = int64(i)
	}
	return rank
}

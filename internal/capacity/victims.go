package capacity

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Victims are chosen exactly, because each costs its job a restart from the last checkpoint. A gang misses k workers. Each node
// offers, for each number of workers it could gain, the cheapest set of its surplus that would have to leave; a knapsack over
// the nodes picks the cheapest sum of offers that gains k or more:
//
//	              gains 1 worker   gains 2 workers
//	node n1       {a7}   cost 1    {a7, b3}  cost 2        best[0] = 0
//	node n2       {c5, c4} cost 2  -                       best[t] = min over nodes and gains j of best[t-j] + cost of j
//	node n3       {b9}   cost 1    {b9}      cost 1        answer: best[k]; for k = 2 it is {b9}
//
// The cost of a set is (how many pods, sum of their ranks): fewest victims first, and among sets of equal size those that come
// first in the order of victims. TestVictimsAreMinimal holds this to brute force.

// choiceLimit is up to how many sets of one node's surplus are all tried. Pods that hold the same differ only in their order,
// so a node of equal workers has as many sets as workers. A node with more sets than this gives its surplus up in the order of
// victims.
const choiceLimit = 4096

// compare orders victims: the lowest tier first, then who was asked before, then the job that loses the least work, then the
// youngest job, then the highest index.
func (s *Surplus) compare(o *Surplus) int {
	return cmp.Or(cmp.Compare(s.Tier, o.Tier), compareTrueFirst(s.Asked, o.Asked), cmp.Compare(s.WorkAtStake, o.WorkAtStake),
		o.Created.Compare(s.Created), cmp.Compare(o.Index, s.Index),
		cmp.Compare(s.Job.Namespace, o.Job.Namespace), cmp.Compare(s.Job.Name, o.Job.Name))
}

func comparePods(a, b *Pod) int { return a.Surplus.compare(b.Surplus) }

func compareTrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// cost of a set of victims: first how many they are, then the sum of their ranks in the order of victims.
type cost struct{ count, rank int64 }

// tooMuch is more than any set costs, and can be added to itself without overflow.
var tooMuch = cost{count: math.MaxInt64 / 2}

func (c cost) plus(o cost) cost { return cost{c.count + o.count, c.rank + o.rank} }

func (c cost) less(o cost) bool { return c.count < o.count || (c.count == o.count && c.rank < o.rank) }

// offer is what one node can do: for each number of workers gained, the cheapest set of its surplus that must leave.
type offer struct {
	now   int32    // workers that fit once leaving pods are gone
	limit int      // workers that the gang misses: no node needs to gain more
	costs []cost   // costs[j-1] for j workers gained
	sets  [][]*Pod // sets[j-1] for j workers gained
}

// selection chooses who gives way for one gang, among surplus that is ranked in the order of victims.
type selection struct {
	demand
	rank map[*Pod]int64
	// unclaimed are the steps without surplus that leaves for some gang already.
	unclaimed map[stepper]stepping
}

func (m *Model) selectionFor(g *Gang, rank map[*Pod]int64) selection {
	return selection{m.demandOf(g), rank, m.unclaimedSteps()}
}

// in is the same selection in a simulation, for the gang or a part of it.
func (s selection) in(rest simulation, g *Gang) selection {
	return selection{rest.demandOf(g), s.rank, s.unclaimed}
}

// among is the same selection among other surplus.
func (s selection) among(rank map[*Pod]int64) selection {
	return selection{s.demand, rank, s.unclaimed}
}

// cheapest is the cheapest set of surplus that makes room for the whole gang. If the limit of the gang's queue is in the way as
// well, surplus of that queue is added, and then the set is small but not proven to be the smallest.
func (s selection) cheapest() []*Pod {
	chosen, possible := s.makeRoom()
	if !possible {
		return nil
	}
	if !s.withinLimit(s.g, s.newCrowd(chosen)) {
		chosen = s.relieveLimit(chosen)
	}
	// The knapsack collected them node by node, but completeSteps begins with the job that is first in the order of victims.
	slices.SortFunc(chosen, comparePods)
	return chosen
}

// makeRoom chooses the cheapest surplus whose leaving makes room on the nodes. possible is false if all surplus is not enough.
func (s selection) makeRoom() (chosen []*Pod, possible bool) {
	missing := int(s.g.Workers - min(s.countRoom(s.worker, s.soonView()), s.g.Workers))
	// best[t] is the least cost at which the nodes so far gain t workers or more.
	best := make([]cost, missing+1)
	for k := 1; k <= missing; k++ {
		best[k] = tooMuch
	}
	var offers []offer
	var taken [][]uint16 // taken[i][t]: how many of t workers node i gains in the best choice for nodes 0..i
	for _, n := range s.worker.nodes {
		if missing == 0 {
			break
		}
		o := s.offerOf(n, missing)
		if len(o.costs) == 0 {
			continue
		}
		gains := make([]uint16, missing+1)
		// Downwards, so that best[total-k] is still without this node: each node makes one offer.
		for total := missing; total > 0; total-- {
			for k := 1; k <= len(o.costs); k++ {
				// A node that gains more than is still missing serves as well as one that gains just that.
				if c := best[max(0, total-k)].plus(o.costs[k-1]); c.less(best[total]) {
					best[total], gains[total] = c, uint16(k)
				}
			}
		}
		offers, taken = append(offers, o), append(taken, gains)
	}
	// A sum with tooMuch in it is at least tooMuch, whatever is added.
	if best[missing].count >= tooMuch.count {
		return nil, false
	}
	// Walk back from the answer and collect the sets that it was made of.
	for i, total := len(offers)-1, missing; i >= 0 && total > 0; i-- {
		if k := int(taken[i][total]); k > 0 {
			chosen = append(chosen, offers[i].sets[k-1]...)
			total = max(0, total-k)
		}
	}
	return chosen, true
}

// relieveLimit adds surplus of the gang's own queue until the limit of the queue allows the gang; nil if all of it is not enough.
func (s selection) relieveLimit(chosen []*Pod) []*Pod {
	gone := s.newCrowd(chosen)
	var own []*Pod
	for i := range s.nodes {
		for _, p := range s.surplus[i] {
			if _, ok := s.rank[p]; ok && p.Queue == s.g.Queue && !gone.pods[p] {
				own = append(own, p)
			}
		}
	}
	byRank := func(a, b *Pod) int { return cmp.Compare(s.rank[a], s.rank[b]) }
	slices.SortFunc(own, byRank)
	for ; !s.withinLimit(s.g, gone); own = own[1:] {
		if len(own) == 0 {
			return nil
		}
		chosen = append(chosen, s.join(gone, own[:1])...)
	}
	// Surplus of the queue may have freed room on the nodes too, so that victims chosen before are unnecessary.
	slices.SortFunc(chosen, byRank)
	return s.dropUnneeded(chosen, gone)
}

// dropUnneeded drops chosen surplus, which is gone, without which the gang fits as well.
func (s selection) dropUnneeded(chosen []*Pod, gone *crowd) []*Pod {
	// Backwards, because the last in the order of victims are spared first.
	for i := len(chosen) - 1; i >= 0; i-- {
		one := []*Pod{chosen[i]}
		s.part(gone, one)
		if s.fitsWithout(gone) {
			chosen = slices.Delete(chosen, i, i+1)
		} else {
			s.join(gone, one)
		}
	}
	return chosen
}

// rankSurplus numbers, in the order of victims, the surplus that the gang may take, that yields, and that is not claimed yet.
func (m *Model) rankSurplus(g *Gang, yields func(types.NamespacedName) bool) map[*Pod]int64 {
	free := slices.DeleteFunc(m.takeableSurplus(g, yields), func(p *Pod) bool { return m.claimed[p.Surplus.UID] })
	return rankOf(trimToSteps(free, m.unclaimedSteps()))
}

// takeableSurplus is the surplus that the gang may take, of jobs for which leaves returns true, in the order of victims. From
// another queue it takes only what that queue has beyond its share, like Volcano's reclaim, and only whole steps.
func (m *Model) takeableSurplus(g *Gang, leaves func(types.NamespacedName) bool) []*Pod {
	over, all := map[string]Amounts{}, slices.DeleteFunc(m.surplusFor(g), func(p *Pod) bool { return !leaves(p.Surplus.Job) })
	all = slices.DeleteFunc(all, func(p *Pod) bool { return p.Queue != g.Queue && !m.keepsShare(over, g, p) })
	return trimToSteps(all, m.steps)
}

// surplusFor is the surplus that takesOf is true for, in the order of victims.
func (m *Model) surplusFor(g *Gang) []*Pod {
	all := slices.Clone(m.inQueue[g.Queue])
	if !m.UnderShare(g) {
		return all
	}
	may := m.takesOf(g)
	for queue, pods := range m.inQueue {
		if queue == g.Queue {
			continue
		}
		for _, p := range pods {
			if may(p) {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, comparePods)
	return all
}

// offerOf computes what one node can gain, up to limit workers.
func (s selection) offerOf(n *node, limit int) offer {
	var candidates []*Pod
	for _, p := range s.surplus[n.number] {
		if _, ok := s.rank[p]; ok {
			candidates = append(candidates, p)
		}
	}
	if len(candidates) == 0 {
		return offer{}
	}
	// Room that leaving pods free anyway is no gain of a set.
	o := offer{now: s.roomOn(s.worker, n, s.soonView(), math.MaxInt32), limit: limit}
	for set := range candidateSets(candidates) {
		free := slices.Clone(s.soonOn(n))
		c := cost{count: int64(len(set))}
		for _, p := range set {
			s.release(free, p)
			c.rank += s.rank[p]
		}
		o.consider(s.roomOn(s.worker, n, s.soonView().without(free, set), math.MaxInt32), c, set)
	}
	return o
}

// consider keeps a set of victims for each number of workers for which it is the cheapest so far. A set that gains 2 workers is
// also an offer for 1.
func (o *offer) consider(room int32, c cost, set []*Pod) {
	gained := min(int(room-o.now), o.limit)
	for len(o.costs) < gained {
		o.costs, o.sets = append(o.costs, tooMuch), append(o.sets, nil)
	}
	for k := range gained {
		if c.less(o.costs[k]) {
			o.costs[k], o.sets[k] = c, set
		}
	}
}

// candidateSets yields the sets of candidates worth trying. The candidates are in the order of victims.
func candidateSets(candidates []*Pod) iter.Seq[[]*Pod] {
	return func(yield func([]*Pod) bool) {
		alike := groupAlike(candidates)
		total := 1
		for _, class := range alike {
			// Cut at each step: the product over many classes would overflow.
			total = min(total*(len(class)+1), choiceLimit+1)
		}
		if total > choiceLimit {
			// Too many to try: only prefixes, that is, surplus leaves in the order of victims.
			for i := range candidates {
				if !yield(candidates[:i+1]) {
					return
				}
			}
			return
		}
		// A choice is a number whose digits say how many pods of each class leave. Within a class the first in order leave first, so
		// that every other set of the same size would be worse.
		for choice := 1; choice < total; choice++ {
			var set []*Pod
			rest := choice
			for _, class := range alike {
				set = append(set, class[:rest%(len(class)+1)]...)
				rest /= len(class) + 1
			}
			if !yield(set) {
				return
			}
		}
	}
}

// groupAlike groups pods that hold the same, each group in the order of the pods.
func groupAlike(pods []*Pod) [][]*Pod {
	var all [][]*Pod
	for _, p := range pods {
		i := slices.IndexFunc(all, func(class []*Pod) bool {
			return maps.Equal(class[0].Requests, p.Requests) && class[0].Parts.SameAs(p.Parts)
		})
		if i < 0 {
			all = append(all, nil)
			i = len(all) - 1
		}
		all[i] = append(all[i], p)
	}
	return all
}

// release adds what a pod holds to a free vector.
func (m *inventory) release(free []int64, p *Pod) {
	for name, amount := range p.Requests {
		if at, ok := m.index[name]; ok {
			free[at] += amount
		}
	}
	if at, ok := m.index[corev1.ResourcePods]; ok {
		free[at]++
	}
	p.shiftParts(free, len(m.names), 1)
}

// surplusOf lists the pods' Surplus.
func surplusOf(pods []*Pod) []Surplus {
	all := make([]Surplus, len(pods))
	for i, p := range pods {
		all[i] = *p.Surplus
	}
	return all
}

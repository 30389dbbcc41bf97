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

// choiceLimit is up to how many choices of one node's surplus are all tried. Pods that hold the same are alike but for their
// order, so that a node full of equal workers has as many choices as workers. A node with more choices gives its surplus up in
// the order of victims.
const choiceLimit = 4096

// compare orders victims: the lowest tier first, then the youngest job, then the highest index.
func (s *Surplus) compare(o *Surplus) int {
	return cmp.Or(cmp.Compare(s.Tier, o.Tier), o.Created.Compare(s.Created), cmp.Compare(o.Index, s.Index),
		cmp.Compare(s.Job.Namespace, o.Job.Namespace), cmp.Compare(s.Job.Name, o.Job.Name))
}

// cost of a set of victims: first how many they are, then how late they come in the order of victims.
type cost struct{ count, rank int64 }

var tooMuch = cost{count: math.MaxInt64 / 2}

func (c cost) plus(o cost) cost { return cost{c.count + o.count, c.rank + o.rank} }

func (c cost) less(o cost) bool { return c.count < o.count || (c.count == o.count && c.rank < o.rank) }

// offer is what one node can do: for k more workers, the cheapest set of its surplus that must leave.
type offer struct {
	now   int32    // workers that fit already, or will once those who leave have gone
	limit int      // workers that are missing
	costs []cost   // by k-1
	sets  [][]*Pod // by k-1
}

// victims is the cheapest set of ranked surplus that makes room for the whole gang beside the workers that fit already: over all
// nodes, the sum of their offers is minimised exactly, as a knapsack over the number of workers gained. Where the queue's limit
// is in the way as well, surplus of the queue itself is added in the order of victims until it is not, and then whoever turns out
// not to be needed stays.
func (m *Model) victims(g *Gang, a *ask, rank map[*Surplus]int64) []Surplus {
	chosen, possible := m.makeRoom(g, a, rank)
	if !possible {
		return nil
	}
	if !m.withinLimit(g, m.crowd(chosen)) {
		chosen = m.relieve(g, a, rank, chosen)
	}
	slices.SortFunc(chosen, func(a, b *Pod) int { return a.Surplus.compare(b.Surplus) })
	return surplusOf(chosen)
}

// makeRoom chooses surplus whose leaving makes room on the nodes; it is not possible when all together is not enough.
func (m *inventory) makeRoom(g *Gang, a *ask, rank map[*Surplus]int64) (chosen []*Pod, possible bool) {
	missing := int(g.Workers - min(a.room(soonOn), g.Workers))
	best := make([]cost, missing+1)
	for k := 1; k <= missing; k++ {
		best[k] = tooMuch
	}
	var offers []offer
	var taken [][]uint16 // by node: how many workers it gains for each total
	for _, n := range a.nodes {
		if missing == 0 {
			break
		}
		o := m.offer(n, a, rank, missing)
		if len(o.costs) == 0 {
			continue
		}
		gains := make([]uint16, missing+1)
		for total := missing; total > 0; total-- {
			for k := 1; k <= len(o.costs); k++ {
				if c := best[max(0, total-k)].plus(o.costs[k-1]); c.less(best[total]) {
					best[total], gains[total] = c, uint16(k)
				}
			}
		}
		offers, taken = append(offers, o), append(taken, gains)
	}
	if best[missing].count >= tooMuch.count {
		return nil, false
	}
	for i, total := len(offers)-1, missing; i >= 0 && total > 0; i-- {
		if k := int(taken[i][total]); k > 0 {
			chosen = append(chosen, offers[i].sets[k-1]...)
			total = max(0, total-k)
		}
	}
	return chosen, true
}

// relieve adds surplus of the gang's own queue to the chosen until the queue's limit holds the gang back no more; nil when all of
// it is not enough.
func (m *Model) relieve(g *Gang, a *ask, rank map[*Surplus]int64, chosen []*Pod) []*Pod {
	gone := m.crowd(chosen)
	var own []*Pod
	for i := range m.nodes {
		for _, p := range m.nodes[i].surplus {
			if _, ok := rank[p.Surplus]; ok && p.Queue == g.Queue && !gone.pods[p] {
				own = append(own, p)
			}
		}
	}
	byRank := func(a, b *Pod) int { return cmp.Compare(rank[a.Surplus], rank[b.Surplus]) }
	slices.SortFunc(own, byRank)
	for ; !m.withinLimit(g, gone); own = own[1:] {
		if len(own) == 0 {
			return nil
		}
		chosen = append(chosen, m.join(gone, own[:1])...)
	}
	slices.SortFunc(chosen, byRank)
	for i := len(chosen) - 1; i >= 0; i-- {
		one := []*Pod{chosen[i]}
		m.part(gone, one)
		if m.fitsWithout(g, a, gone) {
			chosen = slices.Delete(chosen, i, i+1)
		} else {
			m.join(gone, one)
		}
	}
	return chosen
}

// ranks numbers the surplus that the gang may take and that yields and is not claimed, in the order of victims.
func (m *Model) ranks(g *Gang, yields func(types.NamespacedName) bool) map[*Surplus]int64 {
	rank := map[*Surplus]int64{}
	for i, p := range m.takeable(g, yields) {
		if !m.claimed[p.Surplus.UID] {
			rank[p.Surplus] = int64(i)
		}
	}
	return rank
}

// takeable is the surplus that the gang may take of jobs whose surplus leaves, in the order of victims. Of another queue it is no
// more than brings that queue down to its share, as with Volcano's reclaim.
func (m *Model) takeable(g *Gang, leaves func(types.NamespacedName) bool) []*Pod {
	var all []*Pod
	for i := range m.nodes {
		for _, p := range m.nodes[i].surplus {
			if m.mayTake(g, p) && leaves(p.Surplus.Job) {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Pod) int { return a.Surplus.compare(b.Surplus) })
	over := map[string]Amounts{}
	return slices.DeleteFunc(all, func(p *Pod) bool { return p.Queue != g.Queue && !m.spares(over, g, p) })
}

// spares tells whether the pod's queue keeps its share of what the gang asks when this pod leaves beside those before it, and
// books it if so.
func (m *Model) spares(over map[string]Amounts, g *Gang, p *Pod) bool {
	q := m.queues[p.Queue]
	if over[p.Queue] == nil {
		over[p.Queue] = Amounts{}
		for name, share := range q.Deserved {
			over[p.Queue][name] = m.keeps(&q, name) - share
		}
	}
	for name := range g.resources() {
		if left, shared := over[p.Queue][name]; shared && p.Requests[name] > left {
			return false
		}
	}
	for name := range over[p.Queue] {
		over[p.Queue][name] -= p.Requests[name]
	}
	return true
}

// mayTake tells whether the gang may take the pod's place: surplus of its own queue and, while that stays within its own share
// with the gang, of a queue that uses more than its share.
func (m *Model) mayTake(g *Gang, p *Pod) bool {
	if p.Queue == g.Queue {
		return true
	}
	q := m.queues[p.Queue]
	if q.Protected || !m.underShare(g) {
		return false
	}
	for name := range g.resources() {
		share, shared := q.Deserved[name]
		if p.Requests[name] > 0 && (len(q.Deserved) == 0 || (shared && m.keeps(&q, name) > share)) {
			return true
		}
	}
	return false
}

// underShare tells whether the gang's queue has a share of what it asks, and stays within it with the gang.
func (m *Model) underShare(g *Gang) bool {
	q, some := m.queues[g.Queue], false
	for name, amount := range g.asks(g.Workers) {
		if share, shared := q.Deserved[name]; shared {
			some = true
			if m.keeps(&q, name)+amount > share {
				return false
			}
		}
	}
	return some
}

// keeps is what the queue's pods hold of a resource once those who leave have gone.
func (m *Model) keeps(q *Queue, name corev1.ResourceName) int64 {
	return q.Allocated[name] - m.outgoing[q.Name][name]
}

// offer computes what one node can gain, up to limit workers.
func (m *inventory) offer(n *node, a *ask, rank map[*Surplus]int64, limit int) offer {
	var candidates []*Pod
	for _, p := range n.surplus {
		if _, ok := rank[p.Surplus]; ok {
			candidates = append(candidates, p)
		}
	}
	if len(candidates) == 0 {
		return offer{}
	}
	o := offer{now: a.count(n.soon, math.MaxInt32), limit: limit}
	for set := range choices(candidates) {
		free := slices.Clone(n.soon)
		c := cost{count: int64(len(set))}
		for _, p := range set {
			m.release(free, p)
			c.rank += rank[p.Surplus]
		}
		o.consider(a.count(free, math.MaxInt32), c, set)
	}
	return o
}

// consider takes a set of victims into the offer where it is the cheapest.
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

// choices yields the sets of candidates worth trying, which come in the order of victims.
func choices(candidates []*Pod) iter.Seq[[]*Pod] {
	return func(yield func([]*Pod) bool) {
		alike := classes(candidates)
		total := 1
		for _, class := range alike {
			total = min(total*(len(class)+1), choiceLimit+1)
		}
		if total > choiceLimit {
			for i := range candidates {
				if !yield(candidates[:i+1]) {
					return
				}
			}
			return
		}
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

// classes groups pods that hold the same, each group in the order it came in.
func classes(pods []*Pod) [][]*Pod {
	var all [][]*Pod
	for _, p := range pods {
		i := slices.IndexFunc(all, func(class []*Pod) bool { return maps.Equal(class[0].Requests, p.Requests) })
		if i < 0 {
			all = append(all, nil)
			i = len(all) - 1
		}
		all[i] = append(all[i], p)
	}
	return all
}

// release gives back what a pod holds.
func (m *inventory) release(free []int64, p *Pod) {
	for name, amount := range p.Requests {
		if at, ok := m.index[name]; ok {
			free[at] += amount
		}
	}
	if at, ok := m.index[corev1.ResourcePods]; ok {
		free[at]++
	}
}

func surplusOf(pods []*Pod) []Surplus {
	all := make([]Surplus, len(pods))
	for i, p := range pods {
		all[i] = *p.Surplus
	}
	return all
}

package admission

import (
	"cmp"
	"slices"
)

// canBeServed tells whether a claimant is the first in line, and fits once what leaves is gone and all surplus that may leave has
// left too. While it does not, surplus may grow: what the user's surplus holds is not what keeps the claimant waiting.
func (t *table) canBeServed(short []shortage, may []worker) bool {
	for _, s := range short {
		limit, missing := t.limits.All[s.limit], s.beyond-t.coming[s.slot]-t.unseen[s.slot]
		for _, v := range may {
			missing -= limit.limitedAmount(v.of.Worker, v.of.surplusModel(v.Surplus))
		}
		if missing > 0 || t.waiting[s.slot] > 0 {
			return false
		}
	}
	return true
}

// worker is surplus of a claimant.
type worker struct {
	of *Claimant
	Surplus
}

// makeRoom chooses surplus of the claimant's user to leave, if the claimant is first in line and fits then. What is being
// deleted already counts, and so do grants whose pods may not come. It reports whether room is being made. All or nothing:
// surplus that leaves without making enough room would lose work for no job.
func (t *table) makeRoom(c *Claimant, short []shortage, may []worker) bool {
	var victims []worker
	// Each limit in turn; victims chosen for an earlier limit count at the later ones too.
	for _, s := range short {
		limit, missing := t.limits.All[s.limit], s.beyond-t.coming[s.slot]-t.unseen[s.slot]
		for _, v := range victims {
			missing -= limit.limitedAmount(v.of.Worker, v.of.surplusModel(v.Surplus))
		}
		for _, v := range may {
			// Only limits of a user take surplus away. At the queue's capability Volcano evicts surplus by itself.
			if missing <= 0 || limit.Scope != ScopeUser {
				break
			}
			if frees := limit.limitedAmount(v.of.Worker, v.of.surplusModel(v.Surplus)); frees > 0 && !slices.Contains(victims, v) {
				victims, missing = append(victims, v), missing-frees
			}
		}
		if missing > 0 || t.waiting[s.slot] > 0 {
			return false
		}
	}
	for _, v := range victims {
		t.leaving[v.UID] = true
		turn := t.turns[v.of.Job]
		turn.GiveUp, turn.For = append(turn.GiveUp, v.UID), c.Job
		t.turns[v.of.Job] = turn
	}
	return true
}

// yieldingSurplus is the surplus of the claimant's user that may leave: the last job in the order comes first, and in each
// job the highest index.
func (t *table) yieldingSurplus(c *Claimant, all []Claimant) []worker {
	var may []worker
	for i := len(all) - 1; i >= 0; i-- {
		o := &all[i]
		if o.Asks || o.User != c.User {
			continue
		}
		own := slices.SortedFunc(slices.Values(o.Surplus), func(a, b Surplus) int { return cmp.Compare(b.Index, a.Index) })
		for _, s := range own {
			if !s.Stays && !s.Leaving && !t.leaving[s.UID] {
				may = append(may, worker{o, s})
			}
		}
	}
	return may
}

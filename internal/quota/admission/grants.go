package admission

import "time"

// Grants are the permissions whose pods cannot be seen yet.
type Grants map[Key]Grant

// Grant is what one job was permitted.
type Grant struct {
	// Ask of the claimant that has it.
	Ask string
	// Core is since when the job may create its gang; zero for no such grant. More is since when it may have Surplus workers
	// beyond its core in all.
	Core, More time.Time
	Surplus    int32
}

// isGrantValid tells whether a reconciler may still act on a grant.
func isGrantValid(at, now time.Time) bool { return isRecent(at, now) && now.Sub(at) < Validity }

// wasNotUsed tells whether the pods of a grant did not come in time. Then the job rests before it gets another.
func wasNotUsed(at, now time.Time) bool {
	return !at.IsZero() && !isRecent(at, now) && !now.Before(at) && now.Sub(at) < Arrival+Rest
}

func isRecent(at, now time.Time) bool {
	return !at.IsZero() && now.Sub(at) < Arrival && !now.Before(at)
}

// grantOf is the grant of a claimant. A grant of an earlier job or attempt of that name does not count.
func (g Grants) grantOf(c *Claimant) Grant {
	if grant := g[c.Job]; grant.Ask == c.Ask {
		return grant
	}
	return Grant{}
}

// rememberGrants returns the grants of this call, and those of earlier calls whose pods cannot be seen yet or that must rest.
func (t *table) rememberGrants(all []Claimant, before Grants, now time.Time) Grants {
	next := Grants{}
	for i := range all {
		c := &all[i]
		turn, g := t.turns[c.Job], before.grantOf(c)
		switch {
		case isRecent(g.Core, now) || c.Asks && wasNotUsed(g.Core, now):
		case c.Asks && turn.Admitted:
			g.Core = now
		default:
			g.Core = time.Time{}
		}
		switch {
		case turn.Surplus > int32(len(c.Surplus)):
			// A grant that is repeated keeps its time, or its pods would never be late.
			if turn.Surplus != g.Surplus || !isRecent(g.More, now) {
				g.More, g.Surplus = now, turn.Surplus
			}
		case isRecent(g.More, now) && g.Surplus > int32(len(c.Surplus)) || wasNotUsed(g.More, now):
		default:
			g.More, g.Surplus = time.Time{}, 0
		}
		if g != (Grant{}) {
			g.Ask = c.Ask
			next[c.Job] = g
		}
	}
	return next
}

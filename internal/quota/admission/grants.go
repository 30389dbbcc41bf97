package admission

import (
	"maps"
	"time"
)

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
	// Acted is when a reconcile was last seen at work that may act on it; zero for never.
	Acted time.Time
	// Late is true from the first evaluation on that found that not all has come within Arrival. By is when the reconcile had begun
	// that was at work then; zero for none. Later ones are not told of the grant.
	Late bool
	By   time.Time
}

// TurnsLate tells whether the grant lapses now, unless a reconcile acts on it.
func (g Grant) TurnsLate(now time.Time) bool {
	return !g.Late && !isRecent(g.Core, now) && !isRecent(g.More, now)
}

// counts tells whether what was granted at a time counts: its pods may come yet.
func (g Grant) counts(at, now time.Time) bool {
	return isRecent(at, now) || !at.IsZero() && !g.Acted.Before(at) && isRecent(g.Acted, now)
}

// wasNotUsed tells whether the pods of a grant did not come in time. Then the job rests before it gets another.
func (g Grant) wasNotUsed(at, now time.Time) bool {
	last := at
	if g.Acted.After(at) {
		last = g.Acted
	}
	return !at.IsZero() && !g.counts(at, now) && !now.Before(last) && now.Sub(last) < Arrival+Rest
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

// noteActs notes at work on which grants a reconcile is. Such a grant counts for Arrival more, because the caches show here a
// moment later what was written.
func (g Grants) noteActs(all []Claimant, now time.Time) Grants {
	noted := maps.Clone(g)
	for i := range all {
		c := &all[i]
		grant := g.grantOf(c)
		if grant == (Grant{}) {
			continue
		}
		if grant.TurnsLate(now) {
			grant.Late, grant.By = true, c.Acting
		}
		if !c.Acting.IsZero() && (!grant.Late || c.Acting.Equal(grant.By)) {
			grant.Acted = now
		}
		noted[c.Job] = grant
	}
	return noted
}

// rememberGrants returns the grants of this call, and those of earlier calls whose pods cannot be seen yet or that must rest.
func (t *table) rememberGrants(all []Claimant, before Grants, now time.Time) Grants {
	next := Grants{}
	for i := range all {
		c := &all[i]
		turn, g := t.turns[c.Job], before.grantOf(c)
		switch {
		case g.counts(g.Core, now) || c.Asks && g.wasNotUsed(g.Core, now):
		case c.Asks && turn.Admitted:
			g.Core, g.Late = now, false
		default:
			g.Core = time.Time{}
		}
		switch {
		case turn.Surplus > int32(len(c.Surplus)):
			// A grant that is repeated keeps its time, or its pods would never be late.
			if turn.Surplus != g.Surplus || !g.counts(g.More, now) {
				g.More, g.Surplus, g.Late = now, turn.Surplus, false
			}
		case g.counts(g.More, now) && g.Surplus > int32(len(c.Surplus)) || g.wasNotUsed(g.More, now):
		default:
			g.More, g.Surplus = time.Time{}, 0
		}
		if !g.Core.IsZero() || !g.More.IsZero() {
			g.Ask = c.Ask
			next[c.Job] = g
		}
	}
	return next
}

package admission

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// Arrival is how long something that was allowed is counted before it can be seen. What is not there by then counts no more, and
// is not allowed again for the time of Rest: something else holds it up, and must not keep others from their turn.
//
// It is told for the time of Validity, so that who acts on it at the last moment is seen before it counts no more.
const (
	Validity = 5 * time.Second
	Arrival  = 10 * time.Second
	Rest     = time.Minute
)

// Claimant is a job that has its gang, or waits for its turn to have one.
type Claimant struct {
	Job types.NamespacedName
	// Ask is another one for each job and attempt: what was allowed to one is not another's.
	Ask  string
	User string
	// Priority of the tier, Standing of the user and Created of the job order those that wait.
	Priority int32
	Standing v1alpha1.Standing
	Created  time.Time
	// Model of accelerator that it asks for; empty for one that names none or several. Bound is what the pods of such a one hold, by
	// the model of their nodes.
	Model string
	Bound map[string]MilliAmounts
	// Core is what its gang asks for, and Worker one worker more.
	Core, Worker MilliAmounts
	// Accelerated is true for one whose gang asks for accelerators.
	Accelerated bool
	// Asks is true until its gang is there.
	Asks bool
	// InQueue is true for a gang of the profile's queue.
	InQueue bool
	// Surplus are its workers beyond the core, on nodes or not.
	Surplus []Surplus
	// Wants is how many of these it may have by its spec.
	Wants int32
}

// Surplus is a worker beyond the core.
type Surplus struct {
	UID   types.UID
	Index int32
	// Model of the accelerators of its node; empty for one without.
	Model string
	// Stays is true for one that may not be told to leave, and Leaving for one that is on its way out.
	Stays, Leaving bool
}

// Use is what a pod holds that is of no claimant.
type Use struct {
	// User who answers for it; empty if nobody knows.
	User string
	// Model of the accelerators of its node.
	Model string
	Holds MilliAmounts
	// InQueue is true for a pod of the profile's queue.
	InQueue bool
	// Foreign is true for a pod that is not of our jobs.
	Foreign bool
	// Leaving is true for a pod that is on its way out.
	Leaving bool
}

// Turn is what is decided about a job.
type Turn struct {
	// Ask is whose turn it is.
	Ask string
	// Admitted is true for a job that may have its gang.
	Admitted bool
	// Surplus is how many workers beyond its core it may have in all.
	Surplus int32
	// Blocked is what it waits for; nil for a job that is admitted.
	Blocked *Blocked
	// GiveUp are surplus workers that must leave, and For the job that they make room for.
	GiveUp []types.UID
	For    types.NamespacedName
}

// Blocked is why a job's turn has not come.
type Blocked struct {
	Limit Limit
	// User of the job.
	User string
	// Used is what counts for the limit without the job, and Asked what its gang asks for.
	Used, Asked int64
	// Never is true for a gang that exceeds the limit by itself.
	Never bool
	// Leaving is true while surplus leaves for it.
	Leaving bool
	// Place among those that wait at this limit, from 1.
	Place int32
	// Behind is the job before it; empty for the first.
	Behind types.NamespacedName
}

// Grants remember what was allowed, until it can be seen.
type Grants map[types.NamespacedName]Grant

// Grant is what was allowed to one job.
type Grant struct {
	// Ask is what it was allowed to.
	Ask string
	// Core is since when it may have its gang; zero for no such grant. More is since when it may have Surplus, more than it had.
	Core, More time.Time
	Surplus    int32
}

// valid tells whether something that was allowed may still be acted on.
func valid(at, now time.Time) bool { return recent(at, now) && now.Sub(at) < Validity }

// resting tells of something that was allowed and did not come.
func resting(at, now time.Time) bool {
	return !at.IsZero() && !recent(at, now) && !now.Before(at) && now.Sub(at) < Arrival+Rest
}

// slot is a limit and whose use of it counts.
type slot struct {
	limit int
	user  string
}

// table is one Turns at work.
type table struct {
	limits Limits
	used   map[slot]int64
	// coming is what of it is on its way out.
	coming map[slot]int64
	// unseen is what of it was allowed and is not there yet.
	unseen map[slot]int64
	// last is who waits last at a limit, and waiting how many do.
	last    map[slot]types.NamespacedName
	waiting map[slot]int32
	turns   map[types.NamespacedName]Turn
	// leaving are those who were told to go.
	leaving map[types.UID]bool
}

// Turns decides for one profile: who may have a gang, who waits for what, how far each may grow, and who gives way. Those that
// wait at one limit go by tier, standing and age, and nobody overtakes; whoever waits at one limit is not in the way of others at
// another. Grants are what the last Turns returned.
func Turns(
	limits Limits, claimants []Claimant, others []Use, grants Grants, now time.Time,
) (map[types.NamespacedName]Turn, Grants) {
	t := &table{
		limits: limits, used: map[slot]int64{}, coming: map[slot]int64{}, unseen: map[slot]int64{},
		last: map[slot]types.NamespacedName{}, waiting: map[slot]int32{},
		turns: make(map[types.NamespacedName]Turn, len(claimants)), leaving: map[types.UID]bool{},
	}
	all := slices.Clone(claimants)
	slices.SortFunc(all, compare)
	for i := range others {
		t.use(&others[i])
	}
	for i := range all {
		c := &all[i]
		grant := grants.of(c)
		granted := c.Asks && recent(grant.Core, now)
		if granted || !c.Asks {
			t.turns[c.Job] = Turn{Admitted: !granted || valid(grant.Core, now)}
			t.count(c, grant, now)
		}
		c.Asks = c.Asks && !granted
	}
	for i := range all {
		if c := &all[i]; c.Asks && !resting(grants.of(c).Core, now) {
			t.ask(c, all)
		}
	}
	for i := range all {
		t.grow(&all[i], grants.of(&all[i]), now)
	}
	for i := range all {
		if turn, decided := t.turns[all[i].Job]; decided {
			turn.Ask = all[i].Ask
			t.turns[all[i].Job] = turn
		}
	}
	return t.turns, t.remember(all, grants, now)
}

// of is the grant of a claimant; none for one of an earlier job or attempt.
func (g Grants) of(c *Claimant) Grant {
	if grant := g[c.Job]; grant.Ask == c.Ask {
		return grant
	}
	return Grant{}
}

// count books a claimant that has its gang.
func (t *table) count(c *Claimant, grant Grant, now time.Time) {
	t.book(t.used, c, c.Core, c.Model, ScopeUser, ScopeQueue)
	t.book(t.used, c, times(c.Worker, c.counted(grant, now)), c.Model, ScopeUser)
	t.book(t.unseen, c, times(c.Worker, c.counted(grant, now)-int32(len(c.Surplus))), c.Model, ScopeUser)
	for _, s := range c.Surplus {
		if s.Leaving {
			t.book(t.coming, c, c.Worker, c.model(s), ScopeUser)
		}
	}
	if c.Model != "" {
		return
	}
	for i, l := range t.limits.All {
		if l.Model != "" && l.Scope == ScopeUser {
			add(t.used, t.slot(i, c.User), c.Bound[l.Model][l.Resource])
		}
	}
}

// model is that of a surplus worker.
func (c *Claimant) model(s Surplus) string { return cmp.Or(c.Model, s.Model) }

// counted is how many surplus workers count: those that are there, and those that were allowed just now.
func (c *Claimant) counted(g Grant, now time.Time) int32 {
	there := int32(len(c.Surplus))
	if recent(g.More, now) {
		return max(there, g.Surplus)
	}
	return there
}

func recent(at, now time.Time) bool {
	return !at.IsZero() && now.Sub(at) < Arrival && !now.Before(at)
}

// compare orders claimants: who goes first comes first.
func compare(a, b Claimant) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority), cmp.Compare(rank(a.Standing), rank(b.Standing)), a.Created.Compare(b.Created),
		strings.Compare(a.Job.Namespace, b.Job.Namespace), strings.Compare(a.Job.Name, b.Job.Name))
}

func times(amounts MilliAmounts, n int32) MilliAmounts {
	all := make(MilliAmounts, len(amounts))
	for name, amount := range amounts {
		all[name] = product(amount, int64(n))
	}
	return all
}

// product does not overflow: what is more than can be counted is as much as can be.
func product(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/2/a {
		return math.MaxInt64 / 2
	}
	return a * b
}

// slot is where a claimant's use of a limit is counted.
func (t *table) slot(i int, user string) slot {
	if t.limits.All[i].Scope == ScopeUser {
		return slot{i, user}
	}
	return slot{limit: i}
}

func (t *table) use(u *Use) {
	for i, l := range t.limits.All {
		counts := l.Scope == ScopeQueue && u.InQueue ||
			l.Scope == ScopeUser && u.User != "" && (!u.Foreign || !t.limits.IgnoreOthers)
		if counts {
			add(t.used, t.slot(i, u.User), l.of(u.Holds, u.Model))
		}
		if counts && u.Leaving {
			add(t.coming, t.slot(i, u.User), l.of(u.Holds, u.Model))
		}
	}
}

func add(to map[slot]int64, s slot, amount int64) {
	to[s] = min(to[s], math.MaxInt64/2) + min(amount, math.MaxInt64/2)
}

// book counts amounts of a claimant, on a model, at limits of these scopes.
func (t *table) book(to map[slot]int64, c *Claimant, amounts MilliAmounts, model string, scopes ...Scope) {
	for i, l := range t.limits.All {
		if slices.Contains(scopes, l.Scope) && (l.Scope != ScopeQueue || c.InQueue) {
			add(to, t.slot(i, c.User), l.of(amounts, model))
		}
	}
}

// shortage is a limit that a gang would exceed.
type shortage struct {
	slot
	asked, beyond int64
}

// ask decides about a claimant that has no gang yet.
func (t *table) ask(c *Claimant, all []Claimant) {
	if l, asked := t.limits.Never(c.Core, c.Model); l != nil && (l.Scope != ScopeQueue || c.InQueue) {
		t.turns[c.Job] = Turn{Blocked: &Blocked{Limit: *l, User: c.User, Asked: asked, Never: true}}
		return
	}
	if h, used := t.limits.Exceeded(c.User); h != nil && c.Accelerated {
		t.turns[c.Job] = Turn{Blocked: &Blocked{Limit: *h, User: c.User, Used: used}}
		return
	}
	short := t.shortages(c)
	if len(short) == 0 {
		t.turns[c.Job] = Turn{Admitted: true}
		t.book(t.used, c, c.Core, c.Model, ScopeUser, ScopeQueue)
		return
	}
	first := short[0]
	b := &Blocked{
		Limit: t.limits.All[first.limit], User: c.User, Used: t.used[first.slot], Asked: first.asked, Behind: t.last[first.slot],
	}
	b.Leaving = t.makeRoom(c, short, all)
	for _, s := range short {
		t.last[s.slot] = c.Job
		t.waiting[s.slot]++
	}
	b.Place = t.waiting[first.slot]
	t.turns[c.Job] = Turn{Blocked: b}
}

// shortages are the limits that the gang would exceed now, or at which others wait before it. One that waits at a limit of its
// user's stands in no line of the team's.
func (t *table) shortages(c *Claimant) []shortage {
	var short []shortage
	own := false
	for i, l := range t.limits.All {
		if l.Scope == ScopeJob || l.Scope == ScopeQueue && !c.InQueue {
			continue
		}
		asked, at := l.of(c.Core, c.Model), t.slot(i, c.User)
		if asked == 0 {
			continue
		}
		if beyond := t.used[at] + asked - l.Max; beyond > 0 || t.waiting[at] > 0 {
			short = append(short, shortage{slot: at, asked: asked, beyond: beyond})
			own = own || l.Scope == ScopeUser
		}
	}
	return slices.DeleteFunc(short, func(s shortage) bool { return own && t.limits.All[s.limit].Scope == ScopeQueue })
}

// worker is surplus of a claimant.
type worker struct {
	of *Claimant
	Surplus
}

// makeRoom tells surplus of the claimant's user to leave if the claimant is the first in line and that is enough for it, with
// what is on its way out already, or was allowed and does not come. It tells whether room is being made.
func (t *table) makeRoom(c *Claimant, short []shortage, all []Claimant) bool {
	may := t.yielding(c, all)
	var victims []worker
	for _, s := range short {
		limit, missing := t.limits.All[s.limit], s.beyond-t.coming[s.slot]-t.unseen[s.slot]
		for _, v := range victims {
			missing -= limit.of(v.of.Worker, v.of.model(v.Surplus))
		}
		for _, v := range may {
			if missing <= 0 || limit.Scope != ScopeUser {
				break
			}
			if frees := limit.of(v.of.Worker, v.of.model(v.Surplus)); frees > 0 && !slices.Contains(victims, v) {
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

// yielding is the surplus of the claimant's user that may be told to leave: of the last in the order of jobs first, and of each
// the highest index.
func (t *table) yielding(c *Claimant, all []Claimant) []worker {
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

// grow decides how many surplus workers a claimant with a gang may have: those that are there, and more as far as the limits
// leave and nobody waits at them.
func (t *table) grow(c *Claimant, granted Grant, now time.Time) {
	turn := t.turns[c.Job]
	if !turn.Admitted {
		return
	}
	counted := c.counted(granted, now)
	more := int64(max(c.Wants-counted, 0))
	if resting(granted.More, now) {
		more = 0
	}
	if h, _ := t.limits.Exceeded(c.User); h != nil && c.Accelerated {
		more = 0
	}
	for i, l := range t.limits.All {
		each := l.of(c.Worker, c.Model)
		if each == 0 || l.Scope == ScopeQueue {
			continue
		}
		at := t.slot(i, c.User)
		left := l.Max - t.used[at]
		if l.Scope == ScopeJob {
			left = l.Max - l.of(c.Core, c.Model) - product(each, int64(counted))
		}
		if t.waiting[at] > 0 {
			left = 0
		}
		more = min(more, max(left, 0)/each)
	}
	t.book(t.used, c, times(c.Worker, int32(more)), c.Model, ScopeUser)
	told := int32(len(c.Surplus))
	if valid(granted.More, now) || more > 0 {
		told = counted + int32(more)
	}
	turn.Surplus = told - int32(len(turn.GiveUp))
	t.turns[c.Job] = turn
}

// remember keeps what was allowed now, or not long ago, and cannot be seen yet.
func (t *table) remember(all []Claimant, before Grants, now time.Time) Grants {
	next := Grants{}
	for i := range all {
		c := &all[i]
		turn, g := t.turns[c.Job], before.of(c)
		switch {
		case recent(g.Core, now) || c.Asks && resting(g.Core, now):
		case c.Asks && turn.Admitted:
			g.Core = now
		default:
			g.Core = time.Time{}
		}
		switch {
		case turn.Surplus > int32(len(c.Surplus)):
			if turn.Surplus != g.Surplus || !recent(g.More, now) {
				g.More, g.Surplus = now, turn.Surplus
			}
		case recent(g.More, now) && g.Surplus > int32(len(c.Surplus)) || resting(g.More, now):
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

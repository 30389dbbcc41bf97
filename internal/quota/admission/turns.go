package admission

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// What AdmitJobs computes, for each limit of the profile and each user that it counts:
//
//	limit (Max)
//	|-----------------------------------------------------------|
//	| pods of others | cores of gangs | surplus | granted, not  | free
//	|                |                |         | seen yet      |
//	|--------------------------- used --------------------------|
//
//	A gang starts   if used + its core <= Max at every limit, and no other waits there before it.
//	Surplus grows   by min((Max - used) ÷ worker) over all limits, but for those at which the first in line can be served: it fits
//	                once pods that leave are gone and all surplus has left. To grow changes nothing about that.
//	Surplus leaves  if the first in a user's line fits then: beyond - coming - unseen <= what the victims hold.
//
// Grants bridge the time between a decision and the sight of its pods in the cache. Without them the same room would be given
// twice.

// Arrival is how long a grant counts before its pods can be seen, and longer while a reconcile acts on it: see Claimant.Acting.
// If they are not there by then, the grant no longer counts and is not repeated for the time of Rest: something else holds the
// job up, and it must not keep others from their turn.
const (
	Arrival = 10 * time.Second
	Rest    = time.Minute
)

// Key names a job among claimants: a training, or a merge, which may have the name of a training.
type Key struct {
	types.NamespacedName
	Merge bool
}

// String is how messages name the job.
func (k Key) String() string {
	if k.Merge {
		return "MergeJob " + k.NamespacedName.String()
	}
	return k.NamespacedName.String()
}

// Claimant is a job that has its gang, or waits for its turn to have one.
type Claimant struct {
	Job Key
	// Ask identifies job and attempt. A grant to one attempt does not hold for the next.
	Ask  string
	User string
	// Priority of the tier, Standing of the user and Created of the job order those that wait.
	Priority int32
	Standing v1beta1.Standing
	Created  time.Time
	// Since is when it began to wait; zero for one that has its gang.
	Since time.Time
	// Model of accelerator that it asks for; empty for a job that names none or several. Then Bound is what its pods hold, by
	// the model of their nodes.
	Model string
	Bound map[string]MilliAmounts
	// Core is what its gang asks for, and Worker one worker more.
	Core, Worker MilliAmounts
	// Accelerated is true for one whose gang asks for accelerators.
	Accelerated bool
	// Asks is true until its PodGroup exists.
	Asks bool
	// Acting is since when a reconcile is at work, or has ended with writes that the caches may not have seen; zero for none.
	Acting time.Time
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
	// Stays is true for a worker that must not be evicted, and Leaving for one that is being deleted.
	Stays, Leaving bool
}

// Use is what a pod holds that belongs to no claimant.
type Use struct {
	// User who owns it; empty if unknown.
	User string
	// Model of the accelerators of its node.
	Model string
	Holds MilliAmounts
	// InQueue is true for a pod of the profile's queue.
	InQueue bool
	// Foreign is true for a pod that belongs to no job of Tideline.
	Foreign bool
	// Leaving is true for a pod that is being deleted.
	Leaving bool
}

// Turn is the decision about one job.
type Turn struct {
	// Ask of the claimant.
	Ask string
	// Admitted is true for a job that may have its gang. One that is neither admitted nor blocked did not use its last grant in
	// time, and rests.
	Admitted bool
	// Surplus is how many workers beyond its core it may have in all.
	Surplus int32
	// Capped is the limit that keeps a training from more surplus; nil if it has all that it wants, or something else keeps it.
	Capped *Blocked
	// Blocked is what it waits for; nil for a job that is admitted.
	Blocked *Blocked
	// GiveUp are surplus workers that must leave, and For is the job that gets their room.
	GiveUp []types.UID
	For    Key
}

// Blocked is why a job may not start yet.
type Blocked struct {
	Limit Limit
	// User of the job.
	User string
	// Used is the present use of the limit without the job, and Asked what its gang asks for.
	Used, Asked int64
	// Never is true for a gang that exceeds the limit by itself, and Unread while what was used of a budget is being read.
	Never, Unread bool
	// Leaving is true while surplus makes room for it.
	Leaving bool
	// Place among those that wait at this limit, from 1.
	Place int32
	// Behind is the job before it; empty for the first.
	Behind Key
	// First and Fits are for ScopeRoom: from First on the job goes before all newer ones of its tier, and from Fits on it takes room
	// that is free, also while one before it waits.
	First, Fits time.Time
}

// slot is a limit together with the user whose use it counts; no user for a limit of the whole queue.
type slot struct {
	limit int
	user  string
}

// table is the state of one call of AdmitJobs.
type table struct {
	limits Limits
	used   map[slot]int64
	// coming is the part of used that is being deleted.
	coming map[slot]int64
	// unseen is the part of used that was granted and cannot be seen yet.
	unseen map[slot]int64
	// last is the job that waits last at a limit, and waiting the number of those that wait.
	last    map[slot]Key
	waiting map[slot]int32
	turns   map[Key]Turn
	// kept are the limits at which what is free is kept for the first in line, and who that is.
	kept map[slot]Key
	// leaving are the surplus workers that were chosen to make room.
	leaving map[types.UID]bool
}

// AdmitJobs decides for one profile which jobs may have their gang, what each other job waits for, how far each may grow, and
// which surplus makes room. Jobs that wait at a limit start in the order of tier, standing and age, without overtaking. A job
// that waits at one limit does not delay jobs at another. grants are what the last call returned.
func AdmitJobs(
	limits Limits, claimants []Claimant, others []Use, grants Grants, now time.Time,
) (map[Key]Turn, Grants) {
	t := &table{
		limits: limits, used: map[slot]int64{}, coming: map[slot]int64{}, unseen: map[slot]int64{},
		last: map[slot]Key{}, waiting: map[slot]int32{},
		turns: make(map[Key]Turn, len(claimants)), leaving: map[types.UID]bool{}, kept: map[slot]Key{},
	}
	all := slices.Clone(claimants)
	grants = grants.noteActs(all, now)
	slices.SortFunc(all, func(a, b Claimant) int { return limits.Order.compare(&a, &b, now) })
	// 1. What is held counts first. The order of jobs matters only for what is left.
	for i := range others {
		t.addUse(&others[i])
	}
	t.countHolders(all, grants, now)
	// 2. Jobs without a gang, in order. A job whose grant was not used is left out, and so does not hold up those behind it.
	for i := range all {
		c := &all[i]
		switch grant := grants.grantOf(c); {
		case !c.Asks:
		case grant.wasNotUsed(grant.Core, now):
			t.turns[c.Job] = Turn{}
		default:
			t.decideStart(c, all, now)
		}
	}
	// 3. Surplus comes after all gangs: it grows only in what is not kept for one.
	for i := range all {
		t.decideGrowth(&all[i], grants.grantOf(&all[i]), now)
	}
	for i := range all {
		if turn, decided := t.turns[all[i].Job]; decided {
			// A reconciler acts on a turn only if it is of the attempt that it has.
			turn.Ask = all[i].Ask
			t.turns[all[i].Job] = turn
		}
	}
	return t.turns, t.rememberGrants(all, grants, now)
}

// countHolders counts what claimants hold that have a gang, or were granted one whose pods cannot be seen yet. The latter ask no
// longer.
func (t *table) countHolders(all []Claimant, grants Grants, now time.Time) {
	for i := range all {
		c := &all[i]
		grant := grants.grantOf(c)
		granted := c.Asks && grant.counts(grant.Core, now)
		if c.Asks && !granted {
			continue
		}
		t.turns[c.Job] = Turn{Admitted: !granted || isRecent(grant.Core, now)}
		if granted {
			t.limits.Order.seat(c, now) // Its room must not be given away before its gang can be seen.
		}
		t.countHolder(c, grant, now)
		c.Asks = false
	}
}

// countHolder counts what a claimant with a gang holds.
func (t *table) countHolder(c *Claimant, grant Grant, now time.Time) {
	t.bookAmounts(t.used, c, c.Core, c.Model, ScopeUser, ScopeQueue)
	t.bookAmounts(t.used, c, multiplyAmounts(c.Worker, c.countedSurplus(grant, now)), c.Model, ScopeUser)
	t.bookAmounts(t.unseen, c, multiplyAmounts(c.Worker, c.countedSurplus(grant, now)-int32(len(c.Surplus))), c.Model, ScopeUser)
	// Surplus does not count at ScopeQueue: Volcano evicts it there for any gang that waits.
	for _, s := range c.Surplus {
		if s.Leaving {
			t.bookAmounts(t.coming, c, c.Worker, c.surplusModel(s), ScopeUser)
		}
	}
	if c.Model != "" {
		return
	}
	// A job that names no model counts at the limit of a model only with the pods that are on nodes of it.
	for i, l := range t.limits.All {
		if l.Model != "" && l.Scope == ScopeUser {
			addToSlot(t.used, t.slotFor(i, c.User), c.Bound[l.Model][l.Resource])
		}
	}
}

func (c *Claimant) surplusModel(s Surplus) string { return cmp.Or(c.Model, s.Model) }

// countedSurplus is the number of surplus workers that count: those that exist, or more if more were granted just now.
func (c *Claimant) countedSurplus(g Grant, now time.Time) int32 {
	there := int32(len(c.Surplus))
	if g.counts(g.More, now) {
		return max(there, g.Surplus)
	}
	return there
}

func multiplyAmounts(amounts MilliAmounts, n int32) MilliAmounts {
	all := make(MilliAmounts, len(amounts))
	for name, amount := range amounts {
		all[name] = cappedProduct(amount, int64(n))
	}
	return all
}

// cappedProduct multiplies without overflow. Half of the largest int64 is the most, so that two of them can be added.
func cappedProduct(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/2/a {
		return math.MaxInt64 / 2
	}
	return a * b
}

// slotFor is the slot in which a user's use of limit i counts.
func (t *table) slotFor(i int, user string) slot {
	if t.limits.All[i].Scope == ScopeUser {
		return slot{i, user}
	}
	return slot{limit: i}
}

func (t *table) addUse(u *Use) {
	for i, l := range t.limits.All {
		counts := l.Scope == ScopeQueue && u.InQueue ||
			l.Scope == ScopeUser && u.User != "" && (!u.Foreign || !t.limits.IgnoreOthers)
		if counts {
			addToSlot(t.used, t.slotFor(i, u.User), l.limitedAmount(u.Holds, u.Model))
		}
		if counts && u.Leaving {
			addToSlot(t.coming, t.slotFor(i, u.User), l.limitedAmount(u.Holds, u.Model))
		}
	}
}

func addToSlot(to map[slot]int64, s slot, amount int64) {
	to[s] = min(to[s], math.MaxInt64/2) + min(amount, math.MaxInt64/2)
}

// bookAmounts adds amounts of a claimant, on a model, at all limits of these scopes.
func (t *table) bookAmounts(to map[slot]int64, c *Claimant, amounts MilliAmounts, model string, scopes ...Scope) {
	for i, l := range t.limits.All {
		if slices.Contains(scopes, l.Scope) && (l.Scope != ScopeQueue || c.InQueue) {
			addToSlot(to, t.slotFor(i, c.User), l.limitedAmount(amounts, model))
		}
	}
}

// shortage is a limit that a gang would exceed.
type shortage struct {
	slot
	asked, beyond int64
}

// decideStart decides about a claimant that has no gang yet.
func (t *table) decideStart(c *Claimant, all []Claimant, now time.Time) {
	if l, asked := t.limits.NeverFits(c.Core, c.Model); l != nil && (l.Scope != ScopeQueue || c.InQueue) {
		t.turns[c.Job] = Turn{Blocked: &Blocked{Limit: *l, User: c.User, Asked: asked, Never: true}}
		return
	}
	// Budgets are hours of accelerators, so they hold up no other job.
	if b := t.limits.blockedByBudget(c.User); b != nil && c.Accelerated {
		t.turns[c.Job] = Turn{Blocked: b}
		return
	}
	short := t.findShortages(c)
	// Only who is below all limits takes a seat: it keeps the room from those behind.
	if len(short) == 0 && !t.limits.Order.seat(c, now) {
		t.turns[c.Job] = Turn{Blocked: t.waitForRoom(c)}
		return
	}
	if len(short) == 0 {
		t.turns[c.Job] = Turn{Admitted: true}
		t.bookAmounts(t.used, c, c.Core, c.Model, ScopeUser, ScopeQueue)
		return
	}
	first := short[0]
	b := &Blocked{
		Limit: t.limits.All[first.limit], User: c.User, Used: t.used[first.slot], Asked: first.asked, Behind: t.last[first.slot],
	}
	may := t.yieldingSurplus(c, all)
	served := t.canBeServed(short, may)
	b.Leaving = t.makeRoom(c, short, may)
	for _, s := range short {
		if served {
			t.kept[s.slot] = c.Job
		}
		t.last[s.slot] = c.Job
		t.waiting[s.slot]++
	}
	b.Place = t.waiting[first.slot]
	t.turns[c.Job] = Turn{Blocked: b}
}

// findShortages returns the limits that the gang would exceed now, or at which others wait before it.
func (t *table) findShortages(c *Claimant) []shortage {
	var short []shortage
	own := false
	for i, l := range t.limits.All {
		if l.Scope == ScopeJob || l.Scope == ScopeQueue && !c.InQueue {
			continue
		}
		asked, at := l.limitedAmount(c.Core, c.Model), t.slotFor(i, c.User)
		if asked == 0 {
			continue
		}
		if beyond := t.used[at] + asked - l.Max; beyond > 0 || t.waiting[at] > 0 {
			short = append(short, shortage{slot: at, asked: asked, beyond: beyond})
			own = own || l.Scope == ScopeUser
		}
	}
	// A job that waits at a limit of its own user does not wait at those of the team. Otherwise a user who is over a limit would
	// hold up the whole team behind him.
	return slices.DeleteFunc(short, func(s shortage) bool { return own && t.limits.All[s.limit].Scope == ScopeQueue })
}

// decideGrowth decides how many surplus workers a claimant with a gang may have: those that exist, and more as far as limits
// leave room at which no gang waits.
func (t *table) decideGrowth(c *Claimant, granted Grant, now time.Time) {
	turn := t.turns[c.Job]
	if !turn.Admitted {
		return
	}
	counted := c.countedSurplus(granted, now)
	more := int64(max(c.Wants-counted, 0))
	if granted.wasNotUsed(granted.More, now) {
		more = 0
	}
	// A used-up budget takes nothing away, but lets nothing grow.
	if b := t.limits.blockedByBudget(c.User); b != nil && c.Accelerated && more > 0 {
		more, turn.Capped = 0, b
	}
	for i, l := range t.limits.All {
		each := l.limitedAmount(c.Worker, c.Model)
		if each == 0 || l.Scope == ScopeQueue {
			continue
		}
		at := t.slotFor(i, c.User)
		used := t.used[at]
		if l.Scope == ScopeJob {
			used = l.limitedAmount(c.Core, c.Model) + cappedProduct(each, int64(counted))
		}
		left, first := l.Max-used, t.kept[at]
		if first != (Key{}) || c.Job.Merge && t.waiting[at] > 0 { // Pods of a run do not give way to whoever waits.
			left = 0
		}
		if most := max(left, 0) / each; most < more {
			more, turn.Capped = most, &Blocked{Limit: l, User: c.User, Used: used, Behind: first}
			turn.Capped.Used += cappedProduct(each, most)
		}
	}
	t.bookAmounts(t.used, c, multiplyAmounts(c.Worker, int32(more)), c.Model, ScopeUser)
	// The job is told the full number only while it may act on it. Later it is told what exists, although the grant may still count
	// for others.
	told := int32(len(c.Surplus))
	if isRecent(granted.More, now) || more > 0 {
		told = counted + int32(more)
	}
	turn.Surplus = told - int32(len(turn.GiveUp))
	if c.Job.Merge {
		turn.Capped = nil // A run has all its pods from its beginning, and says nothing of more.
	}
	t.turns[c.Job] = turn
}

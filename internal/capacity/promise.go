package capacity

import (
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Promise is room for one waiting gang: room that others make by leaving, room that is free, or surplus that Volcano may take.
// It ends, because something that the model does not see may keep the gang out:
//
//	others leave -> room is there (Free) -> the gang is placed
//	                                     \-> not placed within Docket.PlacementTimeout -> the claim has ended
//
// After that those who left take their room back, and others leave for the gang again only once something about it has changed
// (docs/decisions/0040-claims.md).
type Promise struct {
	For types.NamespacedName
	// Victims are surplus workers that the operator has leave. Stopped are the jobs that stop as a whole, with their workers.
	Victims []Surplus
	Stopped []Holder
	// Free is since when the room is there; zero while it is being made.
	Free time.Time
	// nodes is the fingerprint of the gang's nodes when the victims were chosen.
	nodes uint64
}

// Ended is a claim that has ended: the gang had room and was not placed in time, or did not get the room.
type Ended struct {
	Promise
	// At is when the claim ended. Times is how often in a row it has.
	At    time.Time
	Times int
	// terms is the fingerprint of the gang's pods, Queue and nodes. While it is the same a second promise would probably end like
	// the first.
	terms uint64
	// taken is true if the gang did not get the room: others took it, its nodes changed, or it claimed nothing meanwhile. The gang
	// is not to blame, so it may claim again though its terms are the same.
	taken bool
	// lifted is true once the gang claims room again. The entry is then kept only for its Times.
	lifted bool
}

// Promises are those of one queue.
type Promises struct {
	Standing []Promise
	Ended    []Ended
}

// longestPause bounds the pause between claims that end again and again. The pause holds whatever changes: a node that comes
// and goes every minute must not cost others their places every minute.
const longestPause = time.Hour

// stillCounts is true for an ended claim that makes its gang pause when it claims again, even if the gang claims nothing
// meanwhile.
func (e *Ended) stillCounts(now time.Time) bool { return now.Sub(e.At) < longestPause }

// pauseBefore is how long after the end of a claim the next may begin: the placement timeout, doubled with each end up to an
// hour.
func (e *Ended) pauseBefore(timeout time.Duration) time.Duration {
	// Ten doublings at most, because a longer shift may overflow. A timeout beyond an hour is itself the pause.
	return min(timeout<<min(e.Times-1, 10), max(longestPause, timeout))
}

// Review is a docket whose promises have been checked against the present cluster.
type Review struct {
	*Model
	docket Docket
	// ordered are all waiting gangs. claiming are those whose claims have not ended. Both are in the order of the queue.
	ordered, claiming []*Gang
	next              Promises
	// byUs is what gangs may take if the operator deletes it. byAnybody is what they may take by the operator or by Volcano.
	byUs, byAnybody *reach
	// byUsUnserved is byUs for gangs for which Volcano evicts nobody.
	byUsUnserved *reach
	// repack is advice for a gang of any queue; nil for none. act is true if the operator is to follow it.
	repack *Repack
	act    bool
	// served is true once a gang was found that Volcano can serve with surplus. The others wait for their turn.
	served bool
	// again is after what time the review changes though nothing else does; zero for never.
	again time.Duration
}

// ReviewClaims checks the promises of a docket: which stand, and which claims have ended.
func (m *Model) ReviewClaims(d Docket, now time.Time) *Review {
	d.Promises = d.Promises.notToCome(now)
	r := &Review{Model: m, docket: d, ordered: orderedGangs(d.Waiting), byUs: newReach(d.Yields), byAnybody: newReach(d.Leaves)}
	r.byUsUnserved = newReach(d.yieldsTo(&Gang{Unserved: true}))
	rest := m.clone() // Each gang takes its room here, so that the next one is judged by what is left.
	for _, g := range r.ordered {
		if !r.mayClaim(g, now) {
			continue
		}
		p := r.advance(rest, g, now)
		if p != nil && !p.Free.IsZero() {
			left := d.PlacementTimeout - now.Sub(p.Free)
			if left <= 0 {
				r.endClaim(Ended{Promise: *p, At: now, Times: 1, terms: r.termsOf(g), taken: p.wasMade() && !m.fitsNow(g)})
				continue
			}
			r.reviewIn(left)
		}
		if p != nil {
			r.next.Standing = append(r.next.Standing, *p)
		}
		r.claiming = append(r.claiming, g)
	}
	r.keepAbsent(now)
	return r
}

// keepAbsent handles gangs that are not waiting now: their ended claims keep counting, and promises to them end.
func (r *Review) keepAbsent(now time.Time) {
	known := &r.docket.Promises
	for i := range known.Ended {
		if e := &known.Ended[i]; findGang(r.ordered, e.For) == nil && e.stillCounts(now) {
			r.next.Ended = append(r.next.Ended, *e)
		}
	}
	// A gang that others left for, and that is neither waiting nor placed, was deleted, suspended, or lost a pod. Its claim ends
	// now. Otherwise a gang that replaces a pod once a minute would have others leave for it for ever.
	for i := range known.Standing {
		p := &known.Standing[i]
		if p.wasMade() && findGang(r.ordered, p.For) == nil && !r.docket.Placed[p.For] {
			r.endClaim(Ended{Promise: *p, At: now, Times: 1, taken: true})
		}
	}
}

// AnyMade is true if others leave for a gang of the queue.
func (p Promises) AnyMade() bool { return len(p.MadeFor()) > 0 }

// MadeFor lists the gangs of the queue for which others leave.
func (p Promises) MadeFor() (gangs []types.NamespacedName) {
	for i := range p.Standing {
		if one := &p.Standing[i]; one.wasMade() {
			gangs = append(gangs, one.For)
		}
	}
	return gangs
}

// AllNamed lists the gangs of the queue with a promise or an ended claim.
func (p Promises) AllNamed() (gangs []types.NamespacedName) {
	for i := range p.Standing {
		gangs = append(gangs, p.Standing[i].For)
	}
	for i := range p.Ended {
		gangs = append(gangs, p.Ended[i].For)
	}
	return gangs
}

// notToCome are the promises with no time after now: a clock that was set back since would hold claims up, or make pauses longer,
// for as long as it was set back.
func (p Promises) notToCome(now time.Time) Promises {
	p.Standing, p.Ended = slices.Clone(p.Standing), slices.Clone(p.Ended)
	for i := range p.Standing {
		if free := &p.Standing[i].Free; free.After(now) {
			*free = now
		}
	}
	for i := range p.Ended {
		if at := &p.Ended[i].At; at.After(now) {
			*at = now
		}
	}
	return p
}

// RemainingAt are the ended claims that still count in a queue in which no gang claims room.
func (p Promises) RemainingAt(now time.Time) Promises {
	ended := slices.DeleteFunc(p.notToCome(now).Ended, func(e Ended) bool { return !e.stillCounts(now) })
	return Promises{Ended: ended}
}

// WithoutPlaced forgets the ended claims of gangs that are placed.
func (p Promises) WithoutPlaced(placed map[types.NamespacedName]bool) Promises {
	p.Ended = slices.DeleteFunc(slices.Clone(p.Ended), func(e Ended) bool { return placed[e.For] })
	return p
}

// Queue is the name of the queue.
func (r *Review) Queue() string { return r.docket.Queue }

// ClaimingGangs are the gangs that claim room, in the order of the queue: all waiting gangs except those whose claims have ended.
func (r *Review) ClaimingGangs() []*Gang { return r.claiming }

// mayClaim is true if the gang claims room. After its claim has ended it claims again once something about it has changed, or
// others took its room, and its pause is over.
func (r *Review) mayClaim(g *Gang, now time.Time) bool {
	e := findEnded(r.docket.Promises.Ended, g.Job)
	if e == nil {
		return true
	}
	kept := *e
	if !kept.lifted && (kept.taken || kept.terms != r.termsOf(g)) {
		left := kept.pauseBefore(r.docket.PlacementTimeout) - now.Sub(kept.At)
		if kept.lifted = left <= 0; !kept.lifted {
			r.reviewIn(left)
		}
	}
	r.next.Ended = append(r.next.Ended, kept)
	return kept.lifted
}

// advance returns the gang's promise as it stands now; nil for a gang that has no room and for which none is made. In rest
// the gangs before it have their places.
func (r *Review) advance(rest simulation, g *Gang, now time.Time) *Promise {
	p := Promise{For: g.Job}
	if known := findPromise(r.docket.Promises.Standing, g.Job); known != nil {
		p = *known
	}
	fits := rest.fitsNow(g)
	coming := !fits && rest.fitsSoon(g)
	rest.placeIfFits(g)
	if p.wasMade() {
		return r.advanceMade(&p, g, fits, coming, now)
	}
	if coming && !p.Free.IsZero() {
		return &p // The time continues. Otherwise short pods that come and go on those nodes would keep the claim from ending.
	}
	if !fits && coming {
		return nil // The time begins when nothing that the gang waits for is leaving any more.
	}
	if !fits {
		if served := r.leaveToVolcano(g); !served {
			return nil
		}
	}
	if p.Free.IsZero() {
		p.Free = now
	}
	return &p
}

// advanceMade returns a promise for which others leave, as it stands now; nil if it is void. fits and coming say whether the
// gang fits now, or once leaving pods are gone.
func (r *Review) advanceMade(p *Promise, g *Gang, fits, coming bool, now time.Time) *Promise {
	switch {
	case coming && p.Free.IsZero() || r.isBeingMade(p) && r.wouldServe(p, g):
		p.Free = time.Time{}
	case coming: // The time continues: see advance.
	case !fits && r.fitsNow(g):
		return nil // It fits alone, so gangs before it in the queue get the room.
	case !fits && (p.nodes != r.fingerprint(g) || !r.wouldServe(p, g)):
		// Its nodes have changed, or others took the room. The claim ends at once: a job that resumed meanwhile would have to stop
		// again.
		p.Free = now.Add(-r.docket.PlacementTimeout)
	case p.Free.IsZero():
		p.Free = now
	}
	return p
}

// leaveToVolcano is true for the first starved gang of the queue that Volcano can serve by taking surplus, while the operator
// cannot.
func (r *Review) leaveToVolcano(g *Gang) (served bool) {
	if starved, _ := r.docket.Starved(g); r.served || !starved || r.isBeyond(g) {
		return false
	}
	d := r.demandOf(g)
	byOperator := d.fitsWithout(r.byUsFor(g).circleOf(d).surplus)
	r.served = !byOperator && !g.Unserved && d.fitsWithout(r.byAnybody.circleOf(d).surplus)
	return r.served
}

// byUsFor is what the gang may take if the operator deletes it.
func (r *Review) byUsFor(g *Gang) *reach {
	if g.Unserved {
		return r.byUsUnserved
	}
	return r.byUs
}

// wasMade is true if others leave for the gang.
func (p *Promise) wasMade() bool { return len(p.Victims)+len(p.Stopped) > 0 }

// wouldServe is true if the gang would fit once all who leave for it are gone, and all surplus that it may take.
func (r *Review) wouldServe(p *Promise, g *Gang) bool {
	d := r.demandOf(g)
	gone := r.byAnybody.circleOf(d).surplus.clone()
	for _, victim := range r.podsOf(p.Victims) {
		if victim != nil {
			r.join(gone, []*Pod{victim})
		}
	}
	for _, h := range p.Stopped {
		r.join(gone, r.workers[h.Job])
	}
	return d.fitsWithout(gone)
}

// isBeingMade is true while some of those who leave for the gang still hold their places.
func (r *Review) isBeingMade(p *Promise) bool {
	return len(r.stillPlaced(p.Victims)) > 0 || slices.ContainsFunc(p.Stopped, func(h Holder) bool { return r.holding[h.Job] > 0 })
}

// endClaim records an ended claim, and counts how often the gang's claims have ended in a row.
func (r *Review) endClaim(ended Ended) {
	if before := findEnded(r.next.Ended, ended.For); before != nil {
		ended.Times += before.Times
		*before = ended
		return
	}
	r.next.Ended = append(r.next.Ended, ended)
}

// reviewIn asks for the next review in that time, or earlier.
func (r *Review) reviewIn(in time.Duration) {
	if in > 0 && (r.again == 0 || in < r.again) {
		r.again = in
	}
}

func findPromise(all []Promise, job types.NamespacedName) *Promise {
	if i := slices.IndexFunc(all, func(p Promise) bool { return p.For == job }); i >= 0 {
		return &all[i]
	}
	return nil
}

func findEnded(all []Ended, job types.NamespacedName) *Ended {
	if i := slices.IndexFunc(all, func(e Ended) bool { return e.For == job }); i >= 0 {
		return &all[i]
	}
	return nil
}

// termsOf is a hash that changes when the gang's pods, its Queue, or a node that takes its workers change.
func (r *Review) termsOf(g *Gang) uint64 {
	h := fnv.New64a()
	for _, uid := range g.Pods {
		writeWord(h, string(uid))
	}
	q := r.queues[g.Queue]
	// The number of workers goes under a name that no resource has.
	for _, amounts := range []Amounts{q.Guarantee, q.Deserved, q.Capability, {"": int64(g.Workers)}} {
		writeAmounts(h, amounts)
	}
	return h.Sum64() + r.fingerprint(g)
}

// fingerprint is a hash that changes when a node that takes the gang's workers comes, goes, or changes its size. Labels count
// only if they decide whether a node takes the workers: feature discovery writes labels all the time.
func (m *inventory) fingerprint(g *Gang) uint64 {
	var sum uint64
	for on := range g.variants() {
		sum += m.sumNodes(&on.Shape) + m.domainsNow(on)
		for i := range on.Apart {
			sum += m.sumNodes(&on.Apart[i])
		}
	}
	return sum
}

// sumNodes adds up the hashes of the nodes that take a worker. It is a sum because nodes are listed in any order.
func (m *inventory) sumNodes(s *Shape) uint64 {
	a := m.compile(s)
	sum, known := m.summed[a.constraints]
	if !known {
		for _, n := range a.nodes {
			sum += m.hashOf(n)
		}
		m.summed[a.constraints] = sum
	}
	return sum
}

// hashOf is a hash of the node's name and size; never 0.
func (m *inventory) hashOf(n *node) uint64 {
	if m.hashes == nil {
		m.hashes = make([]uint64, len(m.nodes))
	}
	if m.hashes[n.number] == 0 {
		h := fnv.New64a()
		writeWord(h, n.Name)
		writeAmounts(h, n.Allocatable)
		m.hashes[n.number] = h.Sum64() | 1
	}
	return m.hashes[n.number]
}

type writer interface{ Write([]byte) (int, error) }

// writeWord writes a word and its end. Writing to a hash never fails.
func writeWord(h writer, word string) { _, _ = h.Write(append([]byte(word), 0)) }

func writeAmounts(h writer, amounts Amounts) {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		writeWord(h, string(name))
		var bytes [8]byte
		for i, amount := 0, uint64(amounts[name]); i < len(bytes); i++ {
			bytes[i] = byte(amount >> (8 * i))
		}
		_, _ = h.Write(bytes[:])
	}
	writeWord(h, "")
}

// stillPlaced are those of the victims that still hold a place.
func (r *Review) stillPlaced(victims []Surplus) []Surplus {
	if len(victims) == 0 {
		return nil
	}
	var still []Surplus
	placed := r.placed()
	for _, v := range victims {
		if s := placed[v.UID]; s != nil {
			still = append(still, *s)
		}
	}
	return still
}

// findGang finds the gang of a job; nil for none.
func findGang(gangs []*Gang, job types.NamespacedName) *Gang {
	for _, g := range gangs {
		if g.Job == job {
			return g
		}
	}
	return nil
}

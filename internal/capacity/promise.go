package capacity

import (
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Promise is room for one gang that waits: room that others make by leaving, room that is free, or surplus that Volcano
// may take. It has an end, because something that the model does not see may keep the gang out:
//
//	others leave -> room is there (Free) -> the gang is placed
//	                                     \-> not placed within Docket.PlacementTimeout -> the claim has ended
//
// Then those who left get their room back, and others leave for the gang again only once something about it has changed.
type Promise struct {
	For types.NamespacedName
	// Victims are surplus workers that leave on our word, and Stopped are the jobs that stop whole, with their workers.
	Victims []Surplus
	Stopped []Holder
	// Free is since when the room is there; zero while it is being made.
	Free time.Time
	// nodes is the fingerprint of the gang's nodes when the victims were chosen.
	nodes uint64
}

// Ended is a claim that has ended: room was there for it, and the gang was not placed in time.
type Ended struct {
	Promise
	// At is when the claim ended, and Times how often in a row it has.
	At    time.Time
	Times int
	// terms is the fingerprint of the gang's pods, Queue and nodes. While it stays the same a second promise would end as the
	// first.
	terms uint64
	// taken is true where the gang did not have the room: others took it, its nodes changed, or it claimed nothing meanwhile.
	// Nothing need change for a second promise to be kept.
	taken bool
	// lifted is true once the gang claims room again; the entry then only counts.
	lifted bool
}

// Promises are those of one queue.
type Promises struct {
	Standing []Promise
	Ended    []Ended
}

// longestPause bounds how long a gang whose claims end again and again pauses in between, whatever changes: a node that
// comes and goes each minute must not cost others their places each minute.
const longestPause = time.Hour

// counts tells whether a gang that claims nothing now, such as one that was taken back or suspended, pauses when it claims again.
func (e *Ended) counts(now time.Time) bool { return now.Sub(e.At) < longestPause }

// pause is how long after the end of a claim the next may begin.
func (e *Ended) pause(timeout time.Duration) time.Duration {
	return min(timeout<<min(e.Times-1, 10), max(longestPause, timeout))
}

// Review is a docket with what became of its promises.
type Review struct {
	*Model
	docket Docket
	// ordered are all gangs that wait, and claiming those whose claims have not ended, both in the order of the queue.
	ordered, claiming []*Gang
	next              Promises
	// byUs is whom gangs may take on our word, and byAnybody whom they may take on Volcano's word or ours.
	byUs, byAnybody *reach
	// served is true once a gang was found that surplus serves on Volcano's word: the others wait for their turn to be.
	served bool
	// again is when time alone changes the review; zero for never.
	again time.Duration
}

// Review finds out what became of the promises of a docket: which stand, and which claims have ended.
func (m *Model) Review(d Docket, now time.Time) *Review {
	r := &Review{Model: m, docket: d, ordered: ordered(d.Waiting), byUs: newReach(d.Yields), byAnybody: newReach(d.Leaves)}
	rest := m.clone()
	for _, g := range r.ordered {
		if !r.claims(g, now) {
			continue
		}
		p := r.advance(rest, g, now)
		if p != nil && !p.Free.IsZero() {
			left := d.PlacementTimeout - now.Sub(p.Free)
			if left <= 0 {
				r.end(Ended{Promise: *p, At: now, Times: 1, terms: m.terms(g), taken: p.made() && !m.fits(g)})
				continue
			}
			r.sooner(left)
		}
		if p != nil {
			r.next.Standing = append(r.next.Standing, *p)
		}
		r.claiming = append(r.claiming, g)
	}
	r.keepAbsent(now)
	return r
}

// keepAbsent sees to gangs that do not wait. Their ended claims count on for a while. A gang for which others left, and which has
// not got its places either, was deleted or suspended, or one of its pods is made anew: its claim ends, or coming back in time
// would keep it from its end.
func (r *Review) keepAbsent(now time.Time) {
	known := &r.docket.Promises
	for i := range known.Ended {
		if e := &known.Ended[i]; find(r.ordered, e.For) == nil && e.counts(now) {
			r.next.Ended = append(r.next.Ended, *e)
		}
	}
	for i := range known.Standing {
		p := &known.Standing[i]
		if p.made() && find(r.ordered, p.For) == nil && !r.docket.Placed[p.For] {
			r.end(Ended{Promise: *p, At: now, Times: 1, taken: true})
		}
	}
}

// Made tells whether others were asked to leave for a gang of the queue.
func (p Promises) Made() bool { return len(p.MadeFor()) > 0 }

// MadeFor lists the gangs of the queue for which others were asked to leave.
func (p Promises) MadeFor() (gangs []types.NamespacedName) {
	for i := range p.Standing {
		if one := &p.Standing[i]; one.made() {
			gangs = append(gangs, one.For)
		}
	}
	return gangs
}

// Remaining are the ended claims that count still in a queue in which no gang claims room.
func (p Promises) Remaining(now time.Time) Promises {
	ended := slices.DeleteFunc(slices.Clone(p.Ended), func(e Ended) bool { return !e.counts(now) })
	return Promises{Ended: ended}
}

// Without forgets the ended claims of gangs that have their places.
func (p Promises) Without(placed map[types.NamespacedName]bool) Promises {
	p.Ended = slices.DeleteFunc(slices.Clone(p.Ended), func(e Ended) bool { return placed[e.For] })
	return p
}

// Queue is the name of the queue.
func (r *Review) Queue() string { return r.docket.Queue }

// Claiming are the gangs that claim room, in the order of the queue: all that wait but those whose claims have ended.
func (r *Review) Claiming() []*Gang { return r.claiming }

// claims tells whether the gang claims room: it does not once its claim has ended, until something about it has changed. One
// whose room others took claims again after its pause.
func (r *Review) claims(g *Gang, now time.Time) bool {
	e := findEnded(r.docket.Promises.Ended, g.Job)
	if e == nil {
		return true
	}
	kept := *e
	if !kept.lifted && (kept.taken || kept.terms != r.terms(g)) {
		left := kept.pause(r.docket.PlacementTimeout) - now.Sub(kept.At)
		if kept.lifted = left <= 0; !kept.lifted {
			r.sooner(left)
		}
	}
	r.next.Ended = append(r.next.Ended, kept)
	return kept.lifted
}

// advance is the gang's promise as it stands now; nil for a gang that there is no room for, and that none is made for.
// Rest is the model in which gangs before it have their places.
func (r *Review) advance(rest *Model, g *Gang, now time.Time) *Promise {
	p := Promise{For: g.Job}
	if known := findPromise(r.docket.Promises.Standing, g.Job); known != nil {
		p = *known
	}
	fits := rest.fits(g)
	coming := !fits && rest.roomComes(g)
	rest.settle(g)
	if p.made() {
		return r.advanceMade(&p, g, fits, coming, now)
	}
	if coming && !p.Free.IsZero() {
		return &p // The time goes on, or pods that come and go on those nodes would keep the claim from its end.
	}
	if !fits && coming {
		return nil
	}
	if !fits {
		if served := r.serve(g); !served {
			return nil
		}
	}
	if p.Free.IsZero() {
		p.Free = now
	}
	return &p
}

// advanceMade is a promise for which others were asked to leave, as it stands now; nil for one that promises nothing any more.
// Fits and coming say whether the gang fits now, and whether it will once pods have gone that leave anyway.
func (r *Review) advanceMade(p *Promise, g *Gang, fits, coming bool, now time.Time) *Promise {
	switch {
	case coming && p.Free.IsZero() || r.making(p) && r.serves(p, g):
		p.Free = time.Time{}
	case coming: // The time goes on, or pods that come and go on those nodes would keep the claim from its end.
	case !fits && r.fits(g):
		return nil // Gangs that came before it get the room.
	case !fits && (p.nodes != r.fingerprint(g) || !r.serves(p, g)):
		p.Free = now.Add(-r.docket.PlacementTimeout) // Its nodes have changed, or others took the room, so that no more need leave.
	case p.Free.IsZero():
		p.Free = now
	}
	return p
}

// serve leaves a gang that has starved to Volcano if surplus that Volcano takes by itself is enough for it, and it is the first
// such gang in the queue. It reports whether it did.
func (r *Review) serve(g *Gang) (served bool) {
	if starved, _ := r.docket.Starved(g); r.served || !starved || g.unmodelled() != "" {
		return false
	}
	a := r.compile(&g.Shape)
	r.served = !r.fitsWithout(g, &a, r.byUs.of(r.Model, g).surplus) && r.fitsWithout(g, &a, r.byAnybody.of(r.Model, g).surplus)
	return r.served
}

// made tells whether others were asked to leave for the gang.
func (p *Promise) made() bool { return len(p.Victims)+len(p.Stopped) > 0 }

// serves tells whether the gang would fit once all who leave for it have gone, and surplus that it may take.
func (r *Review) serves(p *Promise, g *Gang) bool {
	a, gone := r.compile(&g.Shape), r.byAnybody.of(r.Model, g).surplus.clone()
	for _, victim := range r.podsOf(p.Victims) {
		if victim != nil {
			r.join(gone, []*Pod{victim})
		}
	}
	for _, h := range p.Stopped {
		r.join(gone, r.workers[h.Job])
	}
	return r.fitsWithout(g, &a, gone)
}

// making tells whether some of those who leave for the gang still hold their places.
func (m *Model) making(p *Promise) bool {
	return len(m.present(p.Victims)) > 0 || slices.ContainsFunc(p.Stopped, func(h Holder) bool { return m.holding[h.Job] > 0 })
}

// end ends a claim, and counts it with those that ended before.
func (r *Review) end(ended Ended) {
	if before := findEnded(r.next.Ended, ended.For); before != nil {
		ended.Times += before.Times
		*before = ended
		return
	}
	r.next.Ended = append(r.next.Ended, ended)
}

func (r *Review) sooner(in time.Duration) {
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

// terms changes when the gang's pods, its Queue, or a node that takes its workers change.
func (m *Model) terms(g *Gang) uint64 {
	h := fnv.New64a()
	for _, uid := range g.Pods {
		writeWord(h, string(uid))
	}
	q := m.queues[g.Queue]
	for _, amounts := range []Amounts{q.Guarantee, q.Deserved, q.Capability, {"": int64(g.Workers)}} {
		writeAmounts(h, amounts)
	}
	return h.Sum64() + m.fingerprint(g)
}

// fingerprint changes when a node that takes the gang's workers comes, goes, or gets another size. Labels and taints that
// decide about that make it come or go.
func (m *inventory) fingerprint(g *Gang) uint64 {
	var sum uint64
	for on := range g.variants() {
		sum += m.sumNodes(&on.Shape)
		for i := range on.Apart {
			sum += m.sumNodes(&on.Apart[i])
		}
	}
	return sum
}

// sumNodes adds up the hashes of the nodes that take a worker: a sum, because nodes come in any order.
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

// writeWord writes a word and its end. A hash never fails to be written.
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

// present are those of the victims that still hold a place.
func (m *Model) present(victims []Surplus) []Surplus {
	var still []Surplus
	for _, v := range victims {
		if s := m.placed[v.UID]; s != nil {
			still = append(still, *s)
		}
	}
	return still
}

func find(gangs []*Gang, job types.NamespacedName) *Gang {
	for _, g := range gangs {
		if g.Job == job {
			return g
		}
	}
	return nil
}

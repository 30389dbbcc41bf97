package capacity

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// makeRoomFor decides what leaves next. In a queue surplus leaves for one gang at a time, and no job stops while jobs that
// stopped before still hold their places: what the model did not see may keep a gang out, and then more would leave in vain.
func (r *Review) makeRoomFor() {
	r.shrinkNext()
	r.moveNext()
	r.stopNext()
}

// shrinkNext has surplus leave for the first gang in the order of the queue that has starved and that surplus can serve.
func (r *Review) shrinkNext() {
	if slices.ContainsFunc(r.next.Standing, func(p Promise) bool { return len(p.Victims) > 0 }) {
		return // Surplus leaves for a gang already.
	}
	rest := r.clone()
	for _, g := range r.claiming {
		if rest.placeIfFits(g) {
			continue // It fits now or soon. Its room is gone for the gangs behind it.
		}
		if starved, in := r.docket.Starved(g); !starved {
			r.reviewIn(in)
			continue
		}
		if !r.byUsFor(g).mayServe(rest.demandOf(g)) {
			continue
		}
		if victims := rest.FindVictims(g, r.docket.yieldsTo(g)); len(victims) > 0 {
			p := r.promiseTo(g)
			// If the gang's nodes change before the victims are gone, the choice may be wrong: see advanceMade.
			p.Victims, p.nodes = victims, r.fingerprint(g)
			return
		}
	}
}

// stopNext has jobs stop as a whole for the first gang in the order of the queue that has starved and that neither surplus nor
// leaving pods can serve.
func (r *Review) stopNext() {
	rest := r.clone()
	for _, g := range r.claiming {
		if rest.fitsNow(g) {
			rest.placeWorkers(g, g.Workers, rest.freeView())
			continue
		}
		starved, in := r.docket.Starved(g)
		p := findPromise(r.next.Standing, g.Job)
		switch {
		case !starved:
			r.reviewIn(in)
		case p != nil && p.wasMade():
			if r.isBeingMade(p) {
				return // Its room is still being made; what the gangs behind it need is judged when it is there.
			}
		default:
			// By anybody: no job stops as a whole for what surplus would do, even where only Volcano takes that.
			stopped, served := rest.preempt(g, r.byAnybody)
			if len(stopped) > 0 {
				p = r.promiseTo(g)
				p.nodes = r.fingerprint(g)
				for _, job := range stopped {
					p.Stopped = append(p.Stopped, Holder{Job: job.Job, Workers: int32(len(r.workers[job.Job]))})
				}
			}
			if served || len(stopped) > 0 {
				return
			}
		}
		// It may not be served: gangs behind it may, but not with the room that it waits for.
		if rest.fitsSoon(g) {
			rest.placeWorkers(g, g.Workers, rest.soonView())
		}
	}
}

// promiseTo returns the gang's promise with its time reset, or a new one.
func (r *Review) promiseTo(g *Gang) *Promise {
	p := findPromise(r.next.Standing, g.Job)
	if p == nil {
		r.next.Standing = append(r.next.Standing, Promise{For: g.Job})
		p = &r.next.Standing[len(r.next.Standing)-1]
	}
	p.Free = time.Time{} // The time to be placed begins when the room is there.
	return p
}

// tellPromises writes promises and ended claims into the verdicts of both sides: the gang that waits, and the jobs that make
// room.
func (r *Review) tellPromises(verdicts map[types.NamespacedName]Verdict) {
	tell := func(job types.NamespacedName, say func(*Verdict)) {
		v := verdicts[job]
		say(&v)
		verdicts[job] = v
	}
	for i := range r.next.Standing {
		p := &r.next.Standing[i]
		g := findGang(r.claiming, p.For)
		tell(p.For, func(v *Verdict) { v.From = append(holdersOf(p.Victims), p.Stopped...) })
		// A job that has stopped already needs no word any more.
		for _, h := range p.Stopped {
			if slices.ContainsFunc(r.running, func(job Running) bool { return job.Job == h.Job }) {
				tell(h.Job, func(v *Verdict) { v.Preempt = &Preemption{By: p.For, Tier: g.TierName} })
			}
		}
		if !p.wasMade() {
			continue
		}
		for _, s := range p.Victims {
			r.claimed[s.UID] = true
		}
		for _, s := range r.mustLeave(p, g) {
			tell(s.Job, func(v *Verdict) { v.GiveUp, v.To = append(v.GiveUp, s.UID), p.For })
		}
	}
	for i := range r.next.Ended {
		e := &r.next.Ended[i]
		if e.lifted {
			continue
		}
		if !e.taken {
			tell(e.For, func(v *Verdict) {
				v.Overdue, v.Since, v.From = true, e.Free, append(holdersOf(e.Victims), e.Stopped...)
			})
		}
		for _, h := range append(holdersOf(e.Victims), e.Stopped...) {
			tell(h.Job, func(v *Verdict) { v.InVain = append(v.InVain, e.For) })
		}
	}
}

// mustLeave lists the surplus that must leave for the promise: the victims that still hold a place, and waiting surplus of the
// queues involved.
func (r *Review) mustLeave(p *Promise, g *Gang) []Surplus {
	// Victims leave one after another. Waiting surplus would take each place as it becomes free, but the gang needs all of them.
	queues, yields := []string{g.Queue}, r.docket.yieldsTo(g)
	all := r.stillPlaced(p.Victims)
	for _, v := range p.Victims {
		queues = append(queues, v.queue)
	}
	for _, pod := range r.pending {
		if slices.Contains(queues, pod.Queue) && yields(pod.Surplus.Job) {
			all = append(all, *pod.Surplus)
		}
	}
	return all
}

package capacity

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// makeRoomFor decides who leaves next. One gang of a queue is served by surplus at a time, and no gang stops while those
// that stopped before still hold their places: who else needs room is judged when that is there.
func (r *Review) makeRoomFor() {
	r.shrinkNext()
	r.stopNext()
}

// shrinkNext finds the first gang in the order of the queue that has starved and that surplus can serve. Room for gangs
// before it that fit, or will once those who leave have gone, is theirs.
func (r *Review) shrinkNext() {
	if slices.ContainsFunc(r.next.Standing, func(p Promise) bool { return len(p.Victims) > 0 }) {
		return
	}
	rest := r.clone()
	for _, g := range r.claiming {
		if rest.settle(g) {
			continue
		}
		if starved, in := r.docket.Starved(g); !starved {
			r.sooner(in)
			continue
		}
		if !rest.mayBeServed(g, r.byUs) {
			continue
		}
		if victims := rest.Victims(g, r.docket.Yields); len(victims) > 0 {
			p := r.promise(g)
			p.Victims, p.nodes = victims, r.fingerprint(g)
			return
		}
	}
}

// stopNext has gangs stop for the first in the order of the queue that has starved and that neither surplus nor room on its way
// serves.
func (r *Review) stopNext() {
	rest := r.clone()
	for _, g := range r.claiming {
		if rest.fits(g) {
			rest.place(g, g.Workers, freeOn)
			continue
		}
		starved, in := r.docket.Starved(g)
		p := findPromise(r.next.Standing, g.Job)
		switch {
		case !starved:
			r.sooner(in)
		case p != nil && p.made():
			if r.making(p) {
				return
			}
		default:
			stopped, served := rest.preempt(g, r.byAnybody)
			if len(stopped) > 0 {
				p = r.promise(g)
				p.nodes = r.fingerprint(g)
				for _, job := range stopped {
					p.Stopped = append(p.Stopped, Holder{Job: job.Job, Workers: int32(len(r.workers[job.Job]))})
				}
			}
			if served || len(stopped) > 0 {
				return
			}
		}
		if rest.roomComes(g) {
			rest.place(g, g.Workers, soonOn)
		}
	}
}

// promise is the gang's, begun anew where there is none.
func (r *Review) promise(g *Gang) *Promise {
	p := findPromise(r.next.Standing, g.Job)
	if p == nil {
		r.next.Standing = append(r.next.Standing, Promise{For: g.Job})
		p = &r.next.Standing[len(r.next.Standing)-1]
	}
	p.Free = time.Time{} // Room is made for it.
	return p
}

// mayBeServed tells whether surplus is enough for the gang at all.
func (m *Model) mayBeServed(g *Gang, r *reach) bool {
	a := m.compile(&g.Shape)
	return g.unmodelled() == "" && m.fitsWithout(g, &a, r.of(m, g).surplus)
}

// tellPromises tells both sides what was promised, and what came of it.
func (r *Review) tellPromises(verdicts map[types.NamespacedName]Verdict) {
	tell := func(job types.NamespacedName, say func(*Verdict)) {
		v := verdicts[job]
		say(&v)
		verdicts[job] = v
	}
	for i := range r.next.Standing {
		p := &r.next.Standing[i]
		g := find(r.claiming, p.For)
		tell(p.For, func(v *Verdict) { v.From = append(holdersOf(p.Victims), p.Stopped...) })
		for _, h := range p.Stopped {
			if slices.ContainsFunc(r.running, func(job Running) bool { return job.Job == h.Job }) {
				tell(h.Job, func(v *Verdict) { v.Preempt = &Preemption{By: p.For, Tier: g.TierName} })
			}
		}
		if !p.made() {
			continue
		}
		for _, s := range p.Victims {
			r.claimed[s.UID] = true
		}
		for _, s := range r.leaving(p, g, r.docket.Yields) {
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

// leaving lists who must leave for the promise: the victims that still hold a place and, until the gang is placed, surplus
// of its queue and of theirs that waits, because it would take the places one by one while the gang needs them all.
func (m *Model) leaving(p *Promise, g *Gang, yields func(types.NamespacedName) bool) []Surplus {
	queues := []string{g.Queue}
	all := m.present(p.Victims)
	for _, v := range p.Victims {
		queues = append(queues, v.queue)
	}
	for _, pod := range m.pending {
		if slices.Contains(queues, pod.Queue) && yields(pod.Surplus.Job) {
			all = append(all, *pod.Surplus)
		}
	}
	return all
}

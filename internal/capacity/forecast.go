package capacity

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Future is one way in which things may go on: how long each gang lasts.
type Future struct {
	// Lasts is for how long a gang of the model still runs from now on or, of one that waits, how long it runs once it is placed.
	Lasts func(types.NamespacedName) time.Duration
	// Now is the time of the model, and Horizon how far the future is looked into.
	Now     time.Time
	Horizon time.Duration
	// Stop ends the look into the future early, as if the horizon were reached; nil for never. It is asked at each end of a gang.
	Stop func() bool
}

// ForeseeStart is after what time the gang asked is placed in a future, beside others that wait; false if it is not by the
// horizon, or the model does not cover it:
//
//	now     surplus that the gang may take is gone, and so are leaving pods
//	|       every waiting gang that fits is placed: of the queue with the least of its share the highest tier, then the oldest
//	|--- a gang ends: its room is free, and every waiting gang that fits is placed
//	|--- ...
//	v       the gang asked fits: it is placed
//
// Pods of no training stay, but for those that are known to leave. It does not foresee who comes later, or is stopped.
func (m *Model) ForeseeStart(asked *Gang, others []*Gang, f Future) (after time.Duration, placed bool) {
	if asked.beyondModel() != "" {
		return 0, false
	}
	then := foreseen{simulation: m.clone(), future: f}
	then.expectEnds(m.takesOf(asked))
	then.emptyFor(asked)
	gangs := append([]*Gang{asked}, others...)
	SortGangs(gangs)
	waiting := make([]candidate, len(gangs))
	for i, g := range gangs {
		waiting[i] = candidate{g, g.gangKey()}
	}
	for {
		if waiting = then.placeAll(waiting, asked); then.placed {
			return then.now, true
		}
		if len(then.ends) == 0 || then.ends[0].at > f.Horizon || f.Stop != nil && f.Stop() {
			return 0, false
		}
		then.nextEnd()
	}
}

// foreseen is the cluster in a future.
type foreseen struct {
	simulation
	future Future
	now    time.Duration
	// ends are those to come, in the order of time.
	ends []ending
	// placed is true once the gang asked is.
	placed bool
}

// candidate is a gang that waits. Gangs that ask for the same have the same key.
type candidate struct {
	*Gang

	key string
}

// ending is a gang that ends.
type ending struct {
	at  time.Duration
	end func()
}

// expectEnds expects the end of each gang that runs. What emptied chooses of its surplus is gone already by then.
func (f *foreseen) expectEnds(emptied func(*Pod) bool) {
	for job, pods := range f.workers {
		var stay []*Pod
		for _, p := range pods {
			if p.on != nil && (p.Surplus == nil || p.Kept || !emptied(p)) {
				stay = append(stay, p)
			}
		}
		if len(stay) > 0 && job.Name != "" {
			f.expect(f.future.Lasts(job), func() { f.depart(stay) })
		}
	}
	for _, p := range f.departing {
		if p.Job.Name == "" {
			f.expect(p.Until.Sub(f.future.Now), func() { f.depart([]*Pod{p}) })
		}
	}
}

func (f *foreseen) expect(after time.Duration, end func()) {
	at := f.now + max(0, after)
	i, _ := slices.BinarySearchFunc(f.ends, at, func(e ending, at time.Duration) int { return cmp.Compare(e.at, at) })
	f.ends = slices.Insert(f.ends, i, ending{at, end})
}

// nextEnd lets time go by until the next gang has ended, and with it all that end at the same moment.
func (f *foreseen) nextEnd() {
	f.now = f.ends[0].at
	for len(f.ends) > 0 && f.ends[0].at == f.now {
		first := f.ends[0]
		f.ends = f.ends[1:]
		first.end()
	}
}

// placeAll places the gangs that fit, and returns those that still wait, in their order.
func (f *foreseen) placeAll(waiting []candidate, asked *Gang) []candidate {
	queues := make([]string, len(waiting))
	for i, c := range waiting {
		queues[i] = c.Queue
	}
	full := map[string]bool{} // Who asks for the same as one that does not fit does not fit either.
	still := f.tryByShare(queues, func(i int) bool {
		c := waiting[i]
		if f.placed || full[c.key] || !f.fitsNow(c.Gang) {
			full[c.key] = true
			return false
		}
		if f.placed = c.Gang == asked; !f.placed {
			f.start(c.Gang)
		}
		return true
	})
	return keepThose(waiting, still)
}

// keepThose keeps those of a list for which keep is true, in place.
func keepThose[T any](all []T, keep []bool) []T {
	kept := all[:0]
	for i, one := range all {
		if keep[i] {
			kept = append(kept, one)
		}
	}
	return kept
}

// start places a gang, until it ends.
func (f *foreseen) start(g *Gang) {
	seats := f.settle(g)
	f.expect(f.future.Lasts(g.Job), func() { f.unsettle(g, seats) })
}

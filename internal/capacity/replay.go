package capacity

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Past is what came and ran in a time that is over. All times are since its beginning.
type Past struct {
	Gangs []PastGang
	// Pods are those of no gang: they held what they held, where they were, whatever gangs did.
	Pods []PastPod
	// End is how long the time was.
	End time.Duration
	// Admit returns which of the gangs that ask may have room, by their numbers in Gangs, beside those that were let in before and
	// have not ended. It is asked each time that something came or ended; nil lets all in.
	Admit func(at time.Duration, asking, inside []int) []int
	// Stop ends the replay early; nil for never.
	Stop func() bool
}

// PastGang is a gang that came, ran and ended.
type PastGang struct {
	// Gang is its core. No other has its Job; Tier, Created and the names order those that wait.
	Gang
	// Came is when it asked for room, and Lasts how long it holds it, in all if it is stopped and placed again.
	Came, Lasts time.Duration
	// Began is true for one that had room at the beginning.
	Began bool
	// Follows is the number in Gangs of one that must have ended before this one asks; nil for none.
	Follows *int
	// Priority is that of its tier: of those that may be stopped for another gang the lowest goes first.
	Priority int32
}

// PastPod is a pod that held its place for a time.
type PastPod struct {
	Pod
	From, To time.Duration
}

// Fate is what became of a gang in a replay.
type Fate struct {
	// Placed is true once it had room, after it had Waited. One that never had has Waited until the end.
	Placed bool
	Waited time.Duration
	// Held is for how long it had room, and Stopped how often it was stopped whole for another.
	Held    time.Duration
	Stopped int
}

// ReplayPast plays what came and ran again, on the nodes of the model with its queues, and returns what became of each gang. The
// model must have no pods:
//
//	0      gangs that had room are placed
//	|      a gang comes: it asks, is let in, and waits
//	|      a gang ends: its room is free
//	|--- after each: every gang that fits is placed, of the queue with the least of its share the highest tier first, then the
//	|    oldest; then gangs that may stop others do, by the rule of [Model.preempt]; who is stopped waits again, with the time that
//	|    was left to it
//	v      the end: what runs is cut off
//
// Each gang lasts as long as it did. false if Stop ended it early: then the fates are not known.
func (m *Model) ReplayPast(past Past) ([]Fate, bool) {
	r := &replay{
		foreseen: foreseen{simulation: m.clone()}, past: past, fates: make([]Fate, len(past.Gangs)),
		gangs: make([]*replayed, len(past.Gangs)), there: map[*PastPod]bool{}, followers: map[int][]int{},
	}
	r.expectPast()
	r.act()
	for len(r.ends) > 0 && r.ends[0].at <= past.End && !r.isStopped() {
		r.nextEnd()
		r.act()
	}
	if r.isStopped() {
		return nil, false
	}
	r.cutOff()
	return r.fates, true
}

func (r *replay) isStopped() bool { return r.past.Stop != nil && r.past.Stop() }

// act decides until nothing changes any more at this moment.
func (r *replay) act() {
	r.letIn()
	r.placeWaiting()
	// Who is stopped may leave more room than was needed.
	for vain := map[attemptToStop]bool{}; r.stopForWaiting(vain); {
		r.placeWaiting()
	}
}

// replay is a replay at work.
type replay struct {
	foreseen
	past  Past
	fates []Fate
	gangs []*replayed
	// asking have come and are not let in. waiting are in the order in which they are placed, and running have room.
	asking, running []int
	waiting         []*replayed
	// there are the pods of no gang that hold their place.
	there map[*PastPod]bool
	// followers are those that have come and wait for a gang to end.
	followers map[int][]int
}

// replayed is a gang in a replay.
type replayed struct {
	*PastGang

	number int
	// alike is the same number for gangs that ask for the same.
	alike int
	// left is how long it still holds room once it is placed.
	left time.Duration
	// seats are nil while it has no room, which it has since a time.
	seats []seat
	since time.Duration
	// over is true once it has ended.
	over bool
}

// expectPast expects all that comes and goes by itself. What ends at a moment ends before what comes then.
func (r *replay) expectPast() {
	for i := range r.past.Pods {
		p := &r.past.Pods[i]
		if p.on = r.nodeOf(p.Node, nil); p.on == nil || p.To <= p.From {
			continue
		}
		if p.From <= 0 {
			r.enter(p) // Before gangs are placed.
		} else {
			r.ends = append(r.ends, ending{p.From, func() { r.enter(p) }})
		}
		r.ends = append(r.ends, ending{p.To, func() { r.withdraw(p) }})
	}
	alike := map[string]int{}
	for i := range r.past.Gangs {
		of := r.past.Gangs[i]
		of.Apart = slices.Clone(of.Apart)
		of.Shape.rememberKeys()
		for a := range of.Apart {
			of.Apart[a].rememberKeys()
		}
		key := of.gangKey()
		if _, known := alike[key]; !known {
			alike[key] = len(alike)
		}
		g := &replayed{PastGang: &of, number: i, alike: alike[key], left: of.Lasts}
		r.gangs[i] = g
		if of.Began {
			r.wait(g)
			continue
		}
		r.ends = append(r.ends, ending{of.Came, func() { r.ask(i) }})
	}
	slices.SortStableFunc(r.ends, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
}

// ask has a gang ask, once the one that it follows has ended.
func (r *replay) ask(i int) {
	g := r.gangs[i]
	if g.Follows != nil && !r.gangs[*g.Follows].over {
		r.followers[*g.Follows] = append(r.followers[*g.Follows], i)
		return
	}
	g.Came = max(g.Came, r.now)
	r.asking = append(r.asking, i)
}

// enter has a pod of no gang take its place.
func (r *replay) enter(p *PastPod) {
	r.write()
	r.subtract(r.freeOn(p.on), &p.Pod)
	r.subtract(r.soonOn(p.on), &p.Pod)
	r.addAllocated(p.Queue, p.Requests)
	r.there[p] = true
}

// withdraw has it leave.
func (r *replay) withdraw(p *PastPod) {
	r.write()
	r.release(r.freeOn(p.on), &p.Pod)
	r.release(r.soonOn(p.on), &p.Pod)
	r.deallocate(p.Queue, p.Requests)
	delete(r.there, p)
}

// wait adds a gang to those that wait, in their order.
func (r *replay) wait(g *replayed) {
	at, _ := slices.BinarySearchFunc(r.waiting, g, func(a, b *replayed) int { return a.comesBefore(&b.Gang) })
	r.waiting = slices.Insert(r.waiting, at, g)
}

// letIn asks which of the gangs that have come may wait for room.
func (r *replay) letIn() {
	if len(r.asking) == 0 {
		return
	}
	admitted := slices.Clone(r.asking) // Admit may return a part of its list, which is emptied below.
	if r.past.Admit != nil {
		inside := slices.Clone(r.running)
		for _, g := range r.waiting {
			inside = append(inside, g.number)
		}
		admitted = r.past.Admit(r.now, admitted, inside)
	}
	r.asking = slices.DeleteFunc(r.asking, func(i int) bool { return slices.Contains(admitted, i) })
	for _, i := range admitted {
		r.wait(r.gangs[i])
	}
}

// placeWaiting places the gangs that fit.
func (r *replay) placeWaiting() {
	queues := make([]string, len(r.waiting))
	for i, g := range r.waiting {
		queues[i] = g.Queue
	}
	full := map[int]bool{} // Who asks for the same as one that does not fit does not fit either.
	still := r.tryByShare(queues, func(i int) bool {
		g := r.waiting[i]
		if full[g.alike] || !r.fitsNow(&g.Gang) {
			full[g.alike] = true
			return false
		}
		r.start(g)
		return true
	})
	r.waiting = keepThose(r.waiting, still)
}

// start gives a gang its room, until it ends.
func (r *replay) start(g *replayed) {
	g.seats, g.since = r.settle(&g.Gang), r.now
	r.running = append(r.running, g.number)
	if fate := &r.fates[g.number]; !fate.Placed {
		fate.Placed, fate.Waited = true, r.now-g.Came
	}
	seats := g.seats
	r.expect(g.left, func() {
		// One that was stopped meanwhile ends at another time.
		if len(g.seats) > 0 && &g.seats[0] == &seats[0] {
			r.leave(g)
			r.end(g)
		}
	})
}

// end notes that a gang has ended, for those that follow it.
func (r *replay) end(g *replayed) {
	g.over = true
	for _, i := range r.followers[g.number] {
		r.ask(i)
	}
	delete(r.followers, g.number)
}

// leave takes a gang's room back.
func (r *replay) leave(g *replayed) {
	r.unsettle(&g.Gang, g.seats)
	held := r.now - g.since
	g.seats, g.left = nil, g.left-held
	r.fates[g.number].Held += held
	r.running = slices.DeleteFunc(r.running, func(i int) bool { return i == g.number })
}

// attemptToStop names gangs that would stop the same others.
type attemptToStop struct {
	alike int
	tier  string
}

// stopForWaiting makes room for one gang that waits, by stopping others, and places it. It returns false if it stopped no gang.
// It adds to vain the gangs that did not fit although others were stopped for them: they are not tried again at this moment.
func (r *replay) stopForWaiting(vain map[attemptToStop]bool) bool {
	var m *Model
	running := r.runningTiers()
	tried := maps.Clone(vain)
	for _, g := range r.waiting {
		try := attemptToStop{g.alike, g.TierName}
		if len(g.Preempts) == 0 || tried[try] || r.isStopped() {
			continue
		}
		tried[try] = true
		if !slices.ContainsFunc(g.Preempts, func(tier string) bool { return running[inQueue{g.Queue, tier}] }) {
			continue
		}
		if m == nil {
			m = New(r.snapshot())
		}
		stopped, _ := m.preempt(&g.Gang, newReach(func(types.NamespacedName) bool { return true }))
		if len(stopped) == 0 {
			continue
		}
		for _, victim := range stopped {
			i := slices.IndexFunc(r.running, func(i int) bool { return r.gangs[i].Job == victim.Job })
			of := r.gangs[r.running[i]]
			r.leave(of)
			r.fates[of.number].Stopped++
			r.wait(of)
		}
		if r.fitsNow(&g.Gang) {
			r.waiting = slices.DeleteFunc(r.waiting, func(w *replayed) bool { return w == g })
			r.start(g)
		} else {
			vain[try] = true // The snapshot judged otherwise, for example of devices.
		}
		return true
	}
	return false
}

// runningTiers are the tiers that have running gangs, by queue.
func (r *replay) runningTiers() map[inQueue]bool {
	all := map[inQueue]bool{}
	for _, i := range r.running {
		all[inQueue{r.gangs[i].Queue, r.gangs[i].TierName}] = true
	}
	return all
}

// snapshot is the cluster of this moment.
func (r *replay) snapshot() Snapshot {
	var s Snapshot
	for i := range r.nodes {
		n := r.nodes[i].Node
		n.Held = nil // New is to add it up.
		s.Nodes = append(s.Nodes, n)
	}
	for _, q := range r.queues {
		s.Queues = append(s.Queues, q)
	}
	for _, i := range r.running {
		g := r.gangs[i]
		s.Running = append(s.Running, Running{
			Job: g.Job, Queue: g.Queue, Tier: g.TierName, Priority: g.Priority, Created: g.Created,
		})
		for _, t := range g.seats {
			for range t.n {
				s.Pods = append(s.Pods, Pod{Node: t.on.Name, Requests: r.requestsOfAsk(t.of), Job: g.Job, Queue: g.Queue})
			}
		}
	}
	for p := range r.there {
		s.Pods = append(s.Pods, p.Pod)
	}
	return s
}

// requestsOfAsk is what a worker requests, without resources that no node has.
func (m *inventory) requestsOfAsk(a *ask) Amounts {
	requests := Amounts{}
	for i, at := range a.at {
		if m.names[at] != corev1.ResourcePods {
			requests[m.names[at]] = a.amount[i]
		}
	}
	return requests
}

// cutOff ends the replay.
func (r *replay) cutOff() {
	r.now = r.past.End
	for _, i := range slices.Clone(r.running) {
		r.leave(r.gangs[i])
	}
	for i := range r.fates {
		if fate := &r.fates[i]; !fate.Placed {
			fate.Waited = max(0, r.now-r.gangs[i].Came)
		}
	}
}

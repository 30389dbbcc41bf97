package main

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/growth"
)

const (
	queue  = "team"
	device = corev1.ResourceName("nvidia.com/gpu")
)

// world plays the cluster: Volcano, the kubelets and the gangs of one size. Who grows, who gives way and when is decided by the
// planner of trainings and by the model of capacity, as in the operator.
type world struct {
	load            workload
	equal           bool
	seed            uint64
	random          *rand.Rand
	start, now, end time.Time
	outage          time.Duration
	timers          timers
	// free is how many devices of each node are free.
	free map[string]int32
	// serial numbers what needs an order or a name.
	serial int

	trainings []*elastic
	waiting   []*rigid
	running   []*placement
	// placed are all gangs that were ever placed: what others promised them is kept.
	placed   map[types.NamespacedName]bool
	promises capacity.Promises
	verdicts map[types.NamespacedName]capacity.Verdict
	again    time.Time
	rooms    map[types.NamespacedName]growth.Room

	// What the ledger has of surplus: the time it held nodes, and how many left.
	held time.Duration
	left int64
}

// placement is where a gang of one size runs: how many workers by node.
type placement struct {
	*rigid

	on map[string]int32
}

// timer calls do at a time.
type timer struct {
	at    time.Time
	order int
	do    func()
}

type timers []timer

func (t *timers) Len() int { return len(*t) }
func (t *timers) Less(i, j int) bool {
	return (*t)[i].at.Before((*t)[j].at) || (*t)[i].at.Equal((*t)[j].at) && (*t)[i].order < (*t)[j].order
}
func (t *timers) Swap(i, j int) { (*t)[i], (*t)[j] = (*t)[j], (*t)[i] }
func (t *timers) Push(x any)    { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// run plays one subject through the churn of a seed, and returns what the trainings made of their devices. The same arguments
// give the same result.
func run(load workload, s subject, seed uint64, every, outage time.Duration) (outcome, error) {
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	w := &world{
		load: load, equal: s.equal, seed: seed, random: rand.New(rand.NewPCG(seed, 1)),
		start: start, now: start, end: start.Add(horizon(every)), outage: outage, free: map[string]int32{},
		rooms: map[types.NamespacedName]growth.Room{}, placed: map[types.NamespacedName]bool{},
	}
	for i := range nodes {
		w.free[nodeName(i)] = devicesPerNode
	}
	for i := range load.trainings {
		w.trainings = append(w.trainings, newElastic(w, i, s))
	}
	for _, r := range drawRigid(load.rigidDevices, seed, every) {
		w.after(r.comes, func() { w.waiting = append(w.waiting, &r) })
	}
	w.after(horizon(every), func() {})
	for w.now.Before(w.end) {
		if err := w.settle(); err != nil {
			return outcome{}, fmt.Errorf("%s, seed %d, a change each %s, outage %s: %w", s.name, seed, every, outage, err)
		}
		w.advance()
	}
	sum := outcome{}
	for _, e := range w.trainings {
		sum.Good += e.outcome.Good
		sum.Held += e.outcome.Held
		sum.Changes += e.outcome.Changes
	}
	return sum, nil
}

// after calls do once so much time has passed.
func (w *world) after(d time.Duration, do func()) {
	w.serial++
	heap.Push(&w.timers, timer{w.now.Add(d), w.serial, do})
}

// settle lets Volcano and the planners act until nothing changes any more.
func (w *world) settle() error {
	for range 50 {
		changed := w.schedule()
		w.judge()
		for _, e := range w.trainings {
			changed = e.plan() || changed
		}
		if !changed {
			return nil
		}
	}
	return fmt.Errorf("the planners do not come to rest at %s", w.now)
}

// advance goes to the next moment at which something happens.
func (w *world) advance() {
	next := w.end
	for _, at := range []time.Time{w.again, w.timers[0].at} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	for _, e := range w.trainings {
		if !e.again.IsZero() && e.again.Before(next) {
			next = e.again
		}
	}
	if whole := next.Truncate(time.Second); whole.Before(next) {
		next = whole.Add(time.Second) // Status has whole seconds.
	}
	if !next.After(w.now) {
		next = w.now.Add(time.Second)
	}
	for _, e := range w.trainings {
		e.pass(w.now, next)
		for i := range e.o.Workers {
			if p := &e.o.Workers[i]; p.Scheduled && e.isSurplus(p.Index) {
				w.held += next.Sub(w.now)
			}
		}
	}
	w.now = next
	for len(w.timers) > 0 && !w.timers[0].at.After(w.now) {
		heap.Pop(&w.timers).(timer).do()
	}
}

// schedule places what fits: cores and gangs all or nothing, in the order in which they came, then surplus one by one.
func (w *world) schedule() (changed bool) {
	for _, e := range w.trainings {
		if core := waitingPods(e, false); len(core) == int(w.load.minimum) {
			changed = w.bindAll(e, core) || changed
		}
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(r *rigid) bool {
		if w.totalFree() < r.size {
			return false
		}
		w.place(r)
		changed = true
		return true
	})
	for _, e := range w.trainings {
		for _, p := range waitingPods(e, true) {
			changed = w.bindAll(e, []*podstate.Worker{p}) || changed
		}
	}
	return changed
}

// waitingPods are the pods of the core or of the surplus that wait for a node.
func waitingPods(e *elastic, surplus bool) []*podstate.Worker {
	var all []*podstate.Worker
	for i := range e.o.Workers {
		if p := &e.o.Workers[i]; !p.Scheduled && e.isSurplus(p.Index) == surplus {
			all = append(all, p)
		}
	}
	return all
}

// bindAll binds all of these pods, or none of them.
func (w *world) bindAll(e *elastic, pods []*podstate.Worker) bool {
	if w.totalFree() < int32(len(pods)) {
		return false
	}
	for _, p := range pods {
		e.bind(p, w.fullest())
	}
	return true
}

func (w *world) totalFree() int32 {
	sum := int32(0)
	for _, n := range w.free {
		sum += n
	}
	return sum
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// fullest is the node with the fewest free devices that has one, as Volcano's binpack chooses.
func (w *world) fullest() string {
	best := ""
	for i := range nodes {
		name := nodeName(i)
		if w.free[name] > 0 && (best == "" || w.free[name] < w.free[best]) {
			best = name
		}
	}
	return best
}

// place gives the workers of a gang of one size their nodes. It ends by itself.
func (w *world) place(r *rigid) {
	on := map[string]int32{}
	for range r.size {
		node := w.fullest()
		w.free[node]--
		on[node]++
	}
	p := &placement{r, on}
	w.running = append(w.running, p)
	w.placed[r.key()] = true
	w.after(r.lasts, func() {
		for node, n := range on {
			w.free[node] += n
		}
		w.running = slices.DeleteFunc(w.running, func(other *placement) bool { return other == p })
	})
}

func (r *rigid) key() types.NamespacedName {
	return types.NamespacedName{Namespace: "others", Name: fmt.Sprintf("gang-%d", r.number)}
}

// judge asks the model of capacity, as the arbiter does.
func (w *world) judge() {
	model := capacity.New(w.snapshot())
	all := func(types.NamespacedName) bool { return true }
	review := model.ReviewClaims(capacity.Docket{
		Queue: queue, Waiting: w.gangs(), Promises: w.promises, Placed: w.placed, PlacementTimeout: time.Minute,
		Starved: func(*capacity.Gang) (bool, time.Duration) { return true, 0 }, Yields: all, Leaves: all,
	}, w.now)
	w.verdicts = map[types.NamespacedName]capacity.Verdict{}
	growers := w.growers()
	limits, _ := model.LimitGrowth(growers, review.ClaimingGangs())
	for i := range growers {
		g := &growers[i]
		w.rooms[g.Job] = w.rooms[g.Job].Follow(limits[g.Job]-g.Placed, g.Placed, w.now)
		w.verdicts[g.Job] = capacity.Verdict{SurplusLimit: limits[g.Job], Unjudged: !g.IsJudged(), RoomSince: w.rooms[g.Job].Since}
	}
	decided, promises, again := review.Decide()
	for job, v := range decided {
		if len(v.GiveUp) > 0 {
			known := w.verdicts[job]
			known.GiveUp, known.To = v.GiveUp, v.To
			w.verdicts[job] = known
		}
	}
	w.promises, w.again = promises, time.Time{}
	if again > 0 {
		w.again = w.now.Add(again)
	}
}

func (w *world) snapshot() capacity.Snapshot {
	s := capacity.Snapshot{Queues: []capacity.Queue{{Name: queue}}}
	for i := range nodes {
		s.Nodes = append(s.Nodes, capacity.Node{
			Name: nodeName(i), Allocatable: capacity.Amounts{device: devicesPerNode, corev1.ResourcePods: 110},
		})
	}
	one := capacity.Amounts{device: 1, corev1.ResourcePods: 1}
	for _, p := range w.running {
		for i := range nodes {
			for range p.on[nodeName(i)] {
				s.Pods = append(s.Pods, capacity.Pod{Node: nodeName(i), Requests: one, Queue: queue})
			}
		}
	}
	for _, e := range w.trainings {
		for i := range e.o.Workers {
			p := &e.o.Workers[i]
			pod := capacity.Pod{Node: p.Node, Requests: one, Job: e.key(), Queue: queue, Leaving: p.Terminating}
			if e.isSurplus(p.Index) {
				pod.Surplus = &capacity.Surplus{
					Job: e.key(), UID: p.UID, Index: p.Index, Created: e.o.Job.CreationTimestamp.Time, Step: e.o.Job.Spec.Elasticity.Step,
				}
			}
			if p.Scheduled {
				s.Pods = append(s.Pods, pod)
			} else if e.isSurplus(p.Index) {
				s.Pending = append(s.Pending, pod)
			}
		}
	}
	return s
}

var oneDevice = capacity.Shape{Requests: capacity.Amounts{device: 1, corev1.ResourcePods: 1}}

func (w *world) gangs() []*capacity.Gang {
	var all []*capacity.Gang
	for _, r := range w.waiting {
		all = append(all, &capacity.Gang{
			Job: r.key(), Queue: queue, Created: w.start.Add(r.comes), Since: w.start.Add(r.comes), Shape: oneDevice, Workers: r.size,
		})
	}
	return all
}

func (w *world) growers() []capacity.Grower {
	var all []capacity.Grower
	for _, e := range w.trainings {
		mode := e.o.Job.Spec.Elasticity.Growth.Mode
		if mode != v1beta1.GrowthOnlyIfFits && mode != v1beta1.GrowthOnlyIfPays || e.o.Job.Status.Attempt == nil {
			continue
		}
		placed := int32(0)
		for i := range e.o.Workers {
			if p := &e.o.Workers[i]; p.Scheduled && !p.Terminating && e.isSurplus(p.Index) {
				placed++
			}
		}
		curve := growth.CurveOf(&e.o.Job.Spec, &e.o.Job.Status)
		gain := func(surplus int32) float64 { return curve.GainAt(w.load.minimum + surplus) }
		if w.equal {
			gain = func(surplus int32) float64 { return -float64(surplus) }
		}
		wanted := growth.WorthwhileSurplus(&e.o.Job.Spec, &e.o.Job.Status,
			e.o.Job.WantedSurplus(w.load.minimum, e.o.Job.Spec.MaxReplicas))
		all = append(all, capacity.Grower{Placed: placed, Gain: gain, Gang: capacity.Gang{
			Job: e.key(), Queue: queue, Created: e.o.Job.CreationTimestamp.Time, Shape: oneDevice, Workers: wanted - placed,
		}})
	}
	return all
}

func (w *world) stay() growth.Stay {
	return growth.Stay{Held: w.held, Left: w.left}
}

package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/progress"
)

// elastic is a training under its real planner: what the planner observes, and the trainer that its pods run.
type elastic struct {
	world *world
	o     jobstate.Observed
	// again is when the planner wants to be called again; zero for never.
	again time.Time

	// ranks are the workers that train together. restarts are until when they have no progress after the last change of them.
	ranks    []types.UID
	restarts time.Time
	meter    growth.Meter
	// speed is how fast the trainer is. steps are those of which its lines tell, and said what the operator understands of them.
	speed speed
	steps float64
	said  progress.Meter
	// measured is how many measurements status has.
	measured int
	// trained is the time with progress, and reported that of the last report.
	trained, reported time.Duration

	outcome outcome
}

// outcome is what a training made of its devices.
type outcome struct {
	// Good are device-seconds that trained, as many as workers of the core would need for the same. Held are those that its workers
	// held.
	Good, Held float64
	// Changes is how often its ranks changed, each time with a restart of all.
	Changes int
}

func newElastic(w *world, number int, s subject) *elastic {
	name := fmt.Sprintf("training-%d", number)
	job := &v1beta1.ElasticTrainingJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(w.now),
		},
		Spec: v1beta1.ElasticTrainingJobSpec{
			MinReplicas: w.load.minimum, MaxReplicas: w.load.maximum,
			Elasticity: v1beta1.Elasticity{Shrink: v1beta1.Shrink{MinRunSeconds: ptr.To[int32](0)}},
			Framework: v1beta1.Framework{Torchrun: &v1beta1.Torchrun{
				JoinTimeoutSeconds: ptr.To[int32](600), LastCallTimeoutSeconds: ptr.To[int32](30), ReadTimeoutSeconds: ptr.To[int32](300),
			}},
		},
	}
	s.set(job)
	job.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "trainer", Image: "trainer",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}},
	}}
	e := &elastic{world: w, speed: func(n int) float64 { return float64(n) }, o: jobstate.Observed{
		Job: job, Config: config.DefaultConfiguration(), Queue: jobstate.Queue{Name: queue, State: gang.QueueOpen},
	}}
	if w.load.speeds != nil {
		e.speed = w.load.speeds(w.seed)[number]
	}
	return e
}

func (e *elastic) key() types.NamespacedName {
	return types.NamespacedName{Namespace: e.o.Job.Namespace, Name: e.o.Job.Name}
}

// isSurplus is true for an index beyond the minimum.
func (e *elastic) isSurplus(index int32) bool { return index >= e.world.load.minimum }

// plan has the planner decide, and carries its decision out. It returns true if that changed anything.
func (e *elastic) plan() bool {
	e.o.Verdict = e.world.verdicts[e.key()]
	e.o.Stay = e.world.stay()
	if outage, n := e.meter.Outage(); n > e.measured {
		e.o.MeasuredOutage, e.o.Measurements = outage, n
	} else {
		e.o.MeasuredOutage = 0
	}
	e.o.Trained = nil
	if said, heard := e.said.ReadFigures(0, e.world.now); heard && e.o.Job.Spec.Progress != nil {
		said.Stall = nil
		e.o.Trained = &said
	}
	d := training.Plan(e.o, e.world.now)
	e.again = time.Time{}
	if d.RequeueAfter > 0 {
		e.again = e.world.now.Add(d.RequeueAfter)
	}
	changed := e.apply(&d)
	return e.write(&d.Status) || changed
}

func (e *elastic) write(status *v1beta1.ElasticTrainingJobStatus) bool {
	before := e.o.Job.Status.DeepCopy()
	changed := training.PaceOf(before, status) != 0
	status.DeepCopyInto(&e.o.Job.Status)
	e.o.Departures = nil
	e.measured = max(e.measured, e.o.Measurements)
	if before.ReadyReplicas != status.ReadyReplicas {
		e.meter.NoteChange(e.world.now)
	}
	return changed
}

// apply carries out what concerns pods and groups.
func (e *elastic) apply(d *training.Decision) bool {
	changes := 0
	for i := range d.DeletePods {
		changes += e.leave(d.DeletePods[i].UID)
	}
	for _, g := range d.CreateGroups {
		state := gang.StateOf(g.PodGroup())
		state.UID = types.UID(g.Name)
		if g.Name == gang.CoreName(e.o.Job.Name) {
			e.o.Core = &state
		} else {
			e.o.Surplus = &state
		}
		changes++
	}
	if d.CreateService {
		e.o.Service = "service"
		changes++
	}
	for _, i := range d.CreateWorkers {
		if slices.ContainsFunc(e.o.Workers, func(p podstate.Worker) bool { return p.Index == i }) {
			continue // The name is taken.
		}
		e.world.serial++
		e.o.Workers = append(e.o.Workers, podstate.Worker{
			Index: i, UID: types.UID(fmt.Sprintf("%s-%d", e.o.Job.Name, e.world.serial)), Attempt: d.Blueprint.Attempt.ID(),
			Phase: corev1.PodPending, Marks: d.Blueprint.MarksByIndex()(i, podstate.Marks{}),
		})
		changes++
	}
	return changes > 0
}

// leave is what becomes of a pod that is deleted: it ends after leaveTime, or at once if it has no node.
func (e *elastic) leave(uid types.UID) int {
	for i := range e.o.Workers {
		p := &e.o.Workers[i]
		switch {
		case p.UID != uid || p.Terminating:
		case p.Scheduled:
			p.Terminating = true
			e.world.after(leaveTime, func() { e.remove(uid) })
			return 1
		default:
			e.remove(uid)
			return 1
		}
	}
	return 0
}

func (e *elastic) remove(uid types.UID) {
	i := slices.IndexFunc(e.o.Workers, func(p podstate.Worker) bool { return p.UID == uid })
	p := &e.o.Workers[i]
	if p.Scheduled {
		e.world.free[p.Node]++
		if e.isSurplus(p.Index) {
			e.world.left++
		}
	}
	e.o.Departures = append(e.o.Departures, p.AsDeparture(false))
	e.o.Workers = slices.Delete(e.o.Workers, i, i+1)
	e.meet()
}

// bind gives a pod a node.
func (e *elastic) bind(p *podstate.Worker, node string) {
	e.world.free[node]--
	p.Scheduled, p.Node, p.BoundTime = true, node, metav1.NewTime(e.world.now)
	uid := p.UID
	e.world.after(startTime, func() { e.start(uid) })
}

func (e *elastic) start(uid types.UID) {
	for i := range e.o.Workers {
		if p := &e.o.Workers[i]; p.UID == uid && !p.Terminating {
			p.Phase, p.Ready = corev1.PodRunning, true
		}
	}
	e.meet()
}

// meet has all ranks restart if they are others than before. They do not train before the core is complete.
func (e *elastic) meet() {
	var ranks []types.UID
	core := 0
	for i := range e.o.Workers {
		if p := &e.o.Workers[i]; p.Ready {
			ranks = append(ranks, p.UID)
			if !e.isSurplus(p.Index) {
				core++
			}
		}
	}
	if core < int(e.world.load.minimum) {
		ranks = nil
	}
	slices.Sort(ranks)
	if slices.Equal(ranks, e.ranks) {
		return
	}
	if e.restarts.Before(e.world.now) {
		e.outcome.Changes++ // Several within one outage are one restart.
	}
	e.said.NoteDisturbance()
	e.ranks, e.restarts = ranks, e.world.now.Add(e.world.outage)
	// What waits for progress is looked at again when there is some, and once the outage is measured.
	e.world.after(e.world.outage, func() {})
	e.world.after(max(e.world.outage, 2*time.Minute)+reportEvery+time.Second, func() {})
}

// pass lets time pass for the trainer.
func (e *elastic) pass(from, to time.Time) {
	seconds := to.Sub(from).Seconds()
	for i := range e.o.Workers {
		if e.o.Workers[i].Scheduled {
			e.outcome.Held += seconds
		}
	}
	if e.restarts.After(from) {
		from = e.restarts
	}
	if len(e.ranks) == 0 || !from.Before(to) {
		return
	}
	pace := e.speed(len(e.ranks))
	e.outcome.Good += pace * to.Sub(from).Seconds()
	began := e.trained
	e.trained += to.Sub(from)
	for e.reported+reportEvery <= e.trained {
		e.reported += reportEvery
		at := from.Add(e.reported - began)
		e.meter.NoteProgress(int64(math.Round(e.reported.Seconds())), at)
		e.steps += pace * reportEvery.Seconds() * (1 + noise*e.world.random.NormFloat64())
		line := progress.Report{Step: int64(e.steps), Total: allSteps, Checkpoint: -1, Phase: progress.PhaseTrain}
		_ = e.said.NoteReport(line, at, at)
	}
}

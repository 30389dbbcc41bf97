package training

import (
	"maps"
	"slices"
	"testing"
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
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

const (
	// Reasons of condition DisruptionTarget of pods whose node is gone, whose node is unreachable, and that were evicted.
	reasonNodeGone, reasonTaint, evictionAPI = "DeletionByPodGC", "DeletionByTaintManager", "EvictionByEvictionAPI"
	// incidentWindow is how close together restarts of several workers are one incident.
	incidentWindow = time.Minute
)

// simulator plays the API server, Volcano and the kubelets for one job, and carries decisions out as the controller does.
type simulator struct {
	t   *testing.T
	now time.Time
	// skew is how far the operator's clock is ahead of all others, and mostSkew more than it ever was, either way.
	skew, mostSkew time.Duration

	o    jobstate.Observed
	uids int
	last Decision
	// written is how often status was written, hostsWritten how often the hosts were, events what was told, and measures what was
	// counted.
	written, hostsWritten int

	events   []statuspace.Event
	measures []describe.Measures
	pace     struct{ noticed, written time.Time }
	// paced is the pace of the last difference between the status that is written and the one that should be.
	paced statuspace.Pace

	// graceful has pods that were placed leave only once a kubelet has ended them.
	graceful bool
	// changes counts what decisions did to objects other than the job.
	changes int
	trouble trouble
	// refuses is what the API server says against pods; empty while it takes them.
	refuses string
	// late is what another operator saw that has not acted on it yet.
	late *view
	// judge, if set, sees every decision before it is carried out.
	judge func(v *view, d *Decision)
}

// trouble is what goes wrong with the next decision.
type trouble struct {
	// failing is true when a request fails, after as many as credit have succeeded.
	failing bool
	credit  int
	// refused is true when the write of the status is refused.
	refused bool
}

// view is what an operator saw, and the version of the job that it saw.
type view struct {
	jobstate.Observed

	version int64
}

// newSimulator has a job of minimum..maximum workers with one GPU each, in an open queue.
func newSimulator(t *testing.T, minimum, maximum int32) *simulator {
	t.Helper()
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	job := &v1beta1.ElasticTrainingJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: "ctr", UID: "job", Generation: 1, CreationTimestamp: metav1.NewTime(start.Add(-3 * time.Second)),
		},
		Spec: v1beta1.ElasticTrainingJobSpec{
			MinReplicas: minimum, MaxReplicas: maximum,
			Elasticity: v1beta1.Elasticity{
				Growth: v1beta1.Growth{CooldownSeconds: ptr.To[int32](300)},
				Shrink: v1beta1.Shrink{MinRunSeconds: ptr.To[int32](0)},
			},
			Framework: v1beta1.Framework{Torchrun: &v1beta1.Torchrun{
				JoinTimeoutSeconds:     ptr.To[int32](600),
				LastCallTimeoutSeconds: ptr.To[int32](30), ReadTimeoutSeconds: ptr.To[int32](300),
			}},
			Cleanup:       v1beta1.Cleanup{PodPolicy: v1beta1.CleanPodPolicyRunning},
			SuccessPolicy: v1beta1.SuccessPolicy{CompletionGraceSeconds: ptr.To[int32](300)},
		},
	}
	job.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "trainer", Image: "trainer",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}},
	}}
	return &simulator{t: t, now: start, o: jobstate.Observed{
		Job: job, Config: config.DefaultConfiguration(), Queue: jobstate.Queue{Name: "default", State: gang.QueueOpen},
	}}
}

// step plans once, carries the decision out, and writes the status if it is due.
func (w *simulator) step() *simulator {
	w.bind()
	w.act(view{w.o, w.version()})
	w.trouble = trouble{}
	return w
}

// bind notes when workers got their nodes.
func (w *simulator) bind() {
	for i := range w.o.Workers {
		if p := &w.o.Workers[i]; p.Scheduled && p.BoundTime.IsZero() {
			p.BoundTime = metav1.NewTime(w.now.Truncate(time.Second))
		}
	}
}

// version changes with every write of the job.
func (w *simulator) version() int64 { return w.o.Job.Generation + int64(w.written) }

// look is what an operator sees now, for one that acts on it later.
func (w *simulator) look() view {
	w.bind()
	return view{clone(w.o), w.version()}
}

// clone is a copy that later changes leave alone.
func clone(o jobstate.Observed) jobstate.Observed {
	o.Job = o.Job.DeepCopy()
	o.Workers, o.Departures = slices.Clone(o.Workers), slices.Clone(o.Departures)
	o.Unreachable = maps.Clone(o.Unreachable)
	for _, group := range []**gang.State{&o.Core, &o.Surplus} {
		if *group != nil {
			*group = ptr.To(**group)
		}
	}
	if o.Hosts != nil {
		o.Hosts = &jobstate.Hosts{UID: o.Hosts.UID, Data: maps.Clone(o.Hosts.Data), Digests: maps.Clone(o.Hosts.Digests)}
	}
	return o
}

// clock is the operator's. What it measures by itself, as the pace of its writes, follows a clock that is never set.
func (w *simulator) clock() time.Time { return w.now.Add(w.skew) }

// act plans from what was seen, carries the decision out, and writes the status if it is due. The API server refuses the status
// of one who saw the job before its last change.
func (w *simulator) act(v view) {
	if w.trouble.failing {
		v.Observed = clone(v.Observed) // What is said of the request that failed goes by what was seen before.
	}
	w.last = Plan(v.Observed, w.clock())
	w.judged(&v, &w.last)
	wanted := w.last.Status
	if !w.apply(&w.last) {
		obstacle := jobstate.Obstacle{Reason: v1beta1.ReasonAPIError, Message: "It does not answer."}
		if w.refuses != "" && !w.trouble.failing {
			obstacle = jobstate.Obstacle{Reason: v1beta1.ReasonRejected, Message: w.refuses, Stalled: true}
		}
		wanted = ExplainObstacle(v.Observed, w.clock(), w.last, obstacle)
		w.judged(&v, &Decision{Status: wanted, Losses: w.last.Losses})
	}
	if v.version == w.version() && !w.trouble.refused {
		w.reportWhenDue(&v, &wanted)
	}
}

func (w *simulator) judged(v *view, d *Decision) {
	if w.judge != nil {
		w.judge(v, d)
	}
}

func (w *simulator) reportWhenDue(v *view, wanted *v1beta1.ElasticTrainingJobStatus) {
	w.paced = PaceOf(w.status(), wanted)
	if w.paced == statuspace.Never {
		w.settled(v)
		w.pace.noticed = time.Time{}
		return
	}
	if w.pace.noticed.IsZero() {
		w.pace.noticed = w.now
	}
	if w.paced.TimeToWait(w.pace.noticed, w.pace.written, w.now) > 0 {
		return
	}
	w.events = append(w.events, describe.EventsBetween(&v.Job.Spec, w.status(), wanted)...)
	w.measures = append(w.measures, describe.MeasureChange(w.status(), wanted, w.last.Losses))
	wanted.DeepCopyInto(w.status())
	w.written++
	w.settled(v)
	w.pace.noticed, w.pace.written = time.Time{}, w.now
}

// settled forgets departures and a measurement that the status knows.
func (w *simulator) settled(v *view) {
	known := v.Departures
	if v.Measurements == w.o.Measurements {
		w.o.MeasuredOutage = 0
	}
	w.o.Departures = slices.DeleteFunc(w.o.Departures, func(d podstate.Departure) bool {
		return slices.ContainsFunc(known, func(k podstate.Departure) bool { return k.UID == d.UID })
	})
}

// remove takes a pod away and remembers how it was last seen.
func (w *simulator) remove(uid types.UID) {
	i := slices.IndexFunc(w.o.Workers, func(p podstate.Worker) bool { return p.UID == uid })
	if i < 0 {
		return
	}
	w.o.Departures = append(w.o.Departures, w.o.Workers[i].AsDeparture(w.o.Workers[i].HasSucceeded()))
	w.o.Workers = slices.Delete(w.o.Workers, i, i+1)
}

// settle steps until nothing changes any more, letting the time pass that held-back writes need.
func (w *simulator) settle() *simulator {
	w.t.Helper()
	if !w.settles() {
		w.t.Fatalf("does not settle: %+v", w.last)
	}
	return w
}

// settles tells whether nothing changes any more after five minutes.
func (w *simulator) settles() bool {
	for range 60 {
		if w.graceful {
			w.endPods()
		}
		before := w.changes + w.written
		w.step()
		if w.changes+w.written == before && w.paced == statuspace.Never {
			return true
		}
		w.now = w.now.Add(statuspace.CalmInterval)
	}
	return false
}

// run makes the workers of these indices run and ready; none means all.
func (w *simulator) run(indices ...int32) *simulator {
	for i := range w.o.Workers {
		p := &w.o.Workers[i]
		if !p.HasEnded() && (len(indices) == 0 || slices.Contains(indices, p.Index)) {
			if !p.Ready {
				p.ReadyTime = metav1.NewTime(w.now)
			}
			p.Scheduled, p.Phase, p.Ready = true, corev1.PodRunning, true
			if p.Node == "" {
				p.Node = w.freeNode(p)
			}
		}
	}
	return w
}

// change edits the pod of a worker.
func (w *simulator) change(index int32, edit func(*podstate.Worker)) *simulator {
	w.t.Helper()
	p := w.worker(index)
	if p == nil {
		w.t.Fatalf("there is no worker %d", index)
	}
	edit(p)
	return w
}

func (w *simulator) worker(index int32) *podstate.Worker {
	for i := range w.o.Workers {
		if w.o.Workers[i].Index == index {
			return &w.o.Workers[i]
		}
	}
	return nil
}

// evict takes workers away as Volcano does: a condition, then a plain delete.
func (w *simulator) evict(indices ...int32) *simulator {
	w.t.Helper()
	for _, i := range indices {
		w.change(i, func(p *podstate.Worker) { p.Disruption = corev1.PodReasonPreemptionByScheduler })
		w.remove(w.worker(i).UID)
	}
	return w
}

// end lets workers end as a kubelet does with pods that were asked to leave: in a phase, before they are gone.
func (w *simulator) end(phase corev1.PodPhase, indices ...int32) *simulator {
	w.t.Helper()
	for _, i := range indices {
		w.change(i, func(p *podstate.Worker) { p.Terminating, p.Phase, p.Ready = true, phase, false })
	}
	return w
}

// deletePod takes a worker away as `kubectl delete pod` does.
func (w *simulator) deletePod(index int32) *simulator {
	w.t.Helper()
	w.remove(w.worker(index).UID)
	return w
}

func (w *simulator) scale(maximum int32) *simulator {
	w.o.Job.Spec.MaxReplicas = maximum
	w.o.Job.Generation++
	return w
}

// restart loses what the operator had in memory.
func (w *simulator) restart() *simulator {
	w.o.Departures, w.pace.noticed, w.pace.written = nil, time.Time{}, time.Time{}
	return w
}

func (w *simulator) pass(d time.Duration) *simulator {
	w.now = w.now.Add(d)
	return w
}

// indices lists the workers that have a pod.
func (w *simulator) indices() []int32 {
	all := []int32{}
	for _, p := range w.o.Workers {
		all = append(all, p.Index)
	}
	slices.Sort(all)
	return all
}

func (w *simulator) status() *v1beta1.ElasticTrainingJobStatus { return &w.o.Job.Status }

// trains brings a new simulator to all workers running.
func (w *simulator) trains() *simulator {
	w.t.Helper()
	return w.settle().run().settle().run().settle()
}

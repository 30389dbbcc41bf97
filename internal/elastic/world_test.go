package elastic

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/config"
	"github.com/tideline-io/tideline/internal/gang"
)

// world plays the API server, Volcano and the kubelets for one job, and carries decisions out as the controller does.
type world struct {
	t    *testing.T
	now  time.Time
	o    Observed
	uids int
	last Decision
	// written is how often status was written, hostsWritten how often the hosts were, events what was told, and measures what was
	// counted.
	written, hostsWritten int

	events   []Event
	measures []Measures
	pace     struct{ noticed, written time.Time }
}

// newWorld has a job of minimum..maximum workers with one GPU each, in an open queue.
func newWorld(t *testing.T, minimum, maximum int32) *world {
	t.Helper()
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	job := &v1alpha1.ElasticTrainingJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: "ctr", UID: "job", Generation: 1, CreationTimestamp: metav1.NewTime(start.Add(-3 * time.Second)),
		},
		Spec: v1alpha1.ElasticTrainingJobSpec{
			MinReplicas: minimum, MaxReplicas: maximum,
			Elasticity: v1alpha1.Elasticity{CooldownSeconds: ptr.To[int32](300), MinSurplusRunSeconds: ptr.To[int32](0)},
			Rendezvous: v1alpha1.Rendezvous{
				JoinTimeoutSeconds:     ptr.To[int32](600),
				LastCallTimeoutSeconds: ptr.To[int32](30), ReadTimeoutSeconds: ptr.To[int32](300),
			},
			RunPolicy: v1alpha1.RunPolicy{CleanPodPolicy: v1alpha1.CleanPodPolicyRunning, CompletionGraceSeconds: ptr.To[int32](300)},
		},
	}
	job.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "trainer", Image: "trainer",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}},
	}}
	return &world{t: t, now: start, o: Observed{
		Job: job, Tiers: config.DefaultTiers(), Queue: Queue{Name: "default", State: gang.QueueOpen},
	}}
}

// step plans once, carries the decision out, and writes the status if it is due.
func (w *world) step() *world {
	w.last = Plan(w.o, w.now)
	w.apply(w.last)
	pace := PaceOf(&w.o.Job.Status, &w.last.Status)
	if pace == PaceNever {
		w.o.Departures, w.pace.noticed = nil, time.Time{}
		return w
	}
	if w.pace.noticed.IsZero() {
		w.pace.noticed = w.now
	}
	if pace.Wait(w.pace.noticed, w.pace.written, w.now) <= 0 {
		w.report(w.last)
	}
	return w
}

func (w *world) report(d Decision) {
	w.events = append(w.events, Events(&w.o.Job.Status, &d.Status)...)
	w.measures = append(w.measures, Measure(&w.o.Job.Status, &d.Status, d.Losses))
	d.Status.DeepCopyInto(&w.o.Job.Status)
	w.written++
	w.o.Departures, w.pace.noticed, w.pace.written = nil, time.Time{}, w.now
}

func (w *world) apply(d Decision) {
	if r := d.RequestCheckpoint; r != nil && w.worker(0) != nil && w.worker(0).UID == r.UID {
		w.worker(0).CheckpointRequested, _ = strconv.ParseInt(r.Value, 10, 64)
	}
	for _, pod := range d.DeletePods {
		w.remove(pod.UID)
	}
	if d.CreateService {
		w.o.Service = "service"
	}
	if d.WriteHosts != nil {
		w.o.Hosts = &Hosts{UID: "hosts", Data: d.WriteHosts.Data}
		w.hostsWritten++
	}
	for _, g := range d.CreateGroups {
		state := gang.StateOf(g.PodGroup())
		state.UID = types.UID(g.Name)
		if g.Name == gang.CoreName(w.o.Job.Name) {
			w.o.Core = &state
		} else {
			w.o.Surplus = &state
		}
	}
	for _, i := range d.CreateWorkers {
		w.uids++
		w.o.Workers = append(w.o.Workers, Worker{
			Index: i, UID: types.UID(fmt.Sprintf("pod-%d", w.uids)), Attempt: d.Blueprint.Attempt.ID(), Phase: corev1.PodPending,
		})
	}
	for _, g := range d.DeleteGroups {
		if g.Name == gang.CoreName(w.o.Job.Name) {
			w.o.Core = nil
		} else {
			w.o.Surplus = nil
		}
	}
	if d.DeleteService != "" {
		w.o.Service = ""
	}
}

// remove takes a pod away and remembers how it was last seen.
func (w *world) remove(uid types.UID) {
	i := slices.IndexFunc(w.o.Workers, func(p Worker) bool { return p.UID == uid })
	if i < 0 {
		return
	}
	w.o.Departures = append(w.o.Departures, w.o.Workers[i].Departed(w.o.Workers[i].Succeeded()))
	w.o.Workers = slices.Delete(w.o.Workers, i, i+1)
}

// settle steps until nothing changes any more, letting the time pass that held-back writes need.
func (w *world) settle() *world {
	w.t.Helper()
	for range 60 {
		before := w.fingerprint()
		w.step()
		if w.fingerprint() == before && PaceOf(&w.o.Job.Status, &w.last.Status) == PaceNever {
			return w
		}
		w.now = w.now.Add(calmInterval)
	}
	w.t.Fatalf("does not settle: %+v", w.last)
	return w
}

func (w *world) fingerprint() string {
	return fmt.Sprintf("%+v %v %v %v %d", w.o.Workers, w.o.Core != nil, w.o.Surplus != nil, w.o.Service, w.written)
}

// run makes the workers of these indices run and ready; none means all.
func (w *world) run(indices ...int32) *world {
	for i := range w.o.Workers {
		p := &w.o.Workers[i]
		if !p.ended() && (len(indices) == 0 || slices.Contains(indices, p.Index)) {
			p.Scheduled, p.Phase, p.Ready = true, corev1.PodRunning, true
		}
	}
	return w
}

// change edits the pod of a worker.
func (w *world) change(index int32, edit func(*Worker)) *world {
	w.t.Helper()
	p := w.worker(index)
	if p == nil {
		w.t.Fatalf("there is no worker %d", index)
	}
	edit(p)
	return w
}

func (w *world) worker(index int32) *Worker {
	for i := range w.o.Workers {
		if w.o.Workers[i].Index == index {
			return &w.o.Workers[i]
		}
	}
	return nil
}

// evict takes workers away as Volcano does: a condition, then a plain delete.
func (w *world) evict(indices ...int32) *world {
	w.t.Helper()
	for _, i := range indices {
		w.change(i, func(p *Worker) { p.Disruption = corev1.PodReasonPreemptionByScheduler })
		w.remove(w.worker(i).UID)
	}
	return w
}

// end lets workers end as a kubelet does with pods that were asked to leave: in a phase, before they are gone.
func (w *world) end(phase corev1.PodPhase, indices ...int32) *world {
	w.t.Helper()
	for _, i := range indices {
		w.change(i, func(p *Worker) { p.Terminating, p.Phase, p.Ready = true, phase, false })
	}
	return w
}

// deletePod takes a worker away as `kubectl delete pod` does.
func (w *world) deletePod(index int32) *world {
	w.t.Helper()
	w.remove(w.worker(index).UID)
	return w
}

func (w *world) scale(maximum int32) *world {
	w.o.Job.Spec.MaxReplicas = maximum
	w.o.Job.Generation++
	return w
}

// restart loses what the operator had in memory.
func (w *world) restart() *world {
	w.o.Departures, w.pace.noticed, w.pace.written = nil, time.Time{}, time.Time{}
	return w
}

func (w *world) pass(d time.Duration) *world {
	w.now = w.now.Add(d)
	return w
}

// indices lists the workers that have a pod.
func (w *world) indices() []int32 {
	all := []int32{}
	for _, p := range w.o.Workers {
		all = append(all, p.Index)
	}
	slices.Sort(all)
	return all
}

func (w *world) status() *v1alpha1.ElasticTrainingJobStatus { return &w.o.Job.Status }

// trains brings a new world to all workers running.
func (w *world) trains() *world {
	w.t.Helper()
	return w.settle().run().settle().run().settle()
}

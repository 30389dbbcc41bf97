package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// succeed lets workers end well.
func (w *simulator) succeed(indices ...int32) *simulator {
	w.t.Helper()
	for _, i := range indices {
		w.change(i, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false })
	}
	return w
}

// restartInPlace lets containers of a worker fail and start again.
func (w *simulator) restartInPlace(index int32) *simulator {
	w.t.Helper()
	return w.change(index, func(p *podstate.Worker) {
		p.ContainerRestarts++
		p.Failure = podstate.Failure{ExitCode: 1, Reason: "Error", Message: "cannot save"}
	})
}

func TestLossOfWorker0CallsBackThoseThatSucceeded(t *testing.T) {
	for name, lose := range map[string]func(*simulator){
		"fails in place": func(w *simulator) { w.restartInPlace(0).step() },
		"deleted":        func(w *simulator) { w.deletePod(0).step() },
		"evicted":        func(w *simulator) { w.evict(0).step() },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4).trains().succeed(1, 3).settle()
			g.Expect(w.status().Message).To(Equal(
				"All 2 workers ready. Workers 1 and 3 left, with success or by a rule of the failure policy (Ignore)."))
			lose(w)
			g.Expect(w.last.DeletePods).To(BeEmpty(), "before that is in status")
			w.settle()
			w.run().settle()
			w.run().settle()
			g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3}))
			g.Expect(w.status().ReadyReplicas).To(Equal(int32(4)))
			g.Expect(w.worker(1).Phase).To(Equal(corev1.PodRunning))
		})
	}
}

func TestStrandedWorkersAreCreatedAnew(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 3, 4).trains()
	w.restartInPlace(2).step().restartInPlace(0).settle() // One incident, of which worker 2 was seen first,
	w.restartInPlace(3).settle()                          // and worker 3 last.
	was := w.worker(1).UID
	w.succeed(1, 2, 3).settle()
	g.Expect(w.worker(1).UID).NotTo(Equal(was), "it never met the others at the new store")
	g.Expect(w.last.DeletePods).To(BeEmpty())
	g.Expect(w.worker(2).HasSucceeded()).To(BeTrue(), "it trained to the end")
	g.Expect(w.worker(3).HasSucceeded()).To(BeTrue(), "it trained to the end")
	g.Expect(w.status().Restarts).To(Equal(int32(1)))
	w.run().settle()
	w.succeed(1).settle()
	g.Expect(w.worker(1).HasSucceeded()).To(BeTrue(), "it is new, and trained to the end")
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	w.succeed(0).settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
}

func TestWhoHasMetWorker0AgainIsNotStranded(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*simulator)
		kept    bool
	}{
		"long after": {func(w *simulator) { w.restartInPlace(0).settle().pass(jobstate.ExitBarrier).succeed(1).settle() }, true},
		"soon after": {func(w *simulator) { w.restartInPlace(0).settle().pass(jobstate.ExitBarrier / 2).succeed(1).settle() }, false},
		"restarted and ended while no operator ran": {func(w *simulator) {
			w.restartInPlace(0).restartInPlace(1).succeed(1).settle()
		}, true},
		"succeeded soon after, and was seen long after": {func(w *simulator) {
			w.restartInPlace(0).settle()
			at := w.now
			w.pass(2 * jobstate.ExitBarrier).succeed(1)
			w.change(1, func(p *podstate.Worker) { p.FinishedAt = metav1.NewTime(at.Add(time.Second)) }).settle()
		}, false},
		"succeeded in the same moment": {func(w *simulator) { w.restartInPlace(0).succeed(1).settle() }, false},
		"worker 0 never ran": {func(w *simulator) {
			w.deletePod(0).settle()
			w.restartInPlace(1).settle()
			w.change(0, func(p *podstate.Worker) { p.Disruption = evictionAPI }).deletePod(0).settle()
			w.succeed(1).settle()
		}, true},
		"restarted for itself, before": {func(w *simulator) {
			w.restartInPlace(1).settle().pass(incidentWindow / 2).restartInPlace(0).settle()
			w.succeed(1).settle()
		}, false},
		"a sidecar of worker 0 restarted": {func(w *simulator) {
			w.restartInPlace(0).change(0, func(p *podstate.Worker) { p.Failure.Container = "sidecar" }).settle()
			w.succeed(1).settle()
		}, true},
		"a container of worker 0 restarted, and the template has none any more": {func(w *simulator) {
			w.restartInPlace(0).change(0, func(p *podstate.Worker) { p.Failure.Container = "trainer" })
			containers := w.o.Job.Spec.Template.Spec.Containers
			w.o.Job.Spec.Template.Spec.Containers = nil
			w.step()
			w.o.Job.Spec.Template.Spec.Containers = containers
			w.succeed(1).settle()
		}, false},
		"the trainer of worker 0 restarted": {func(w *simulator) {
			w.restartInPlace(0).change(0, func(p *podstate.Worker) { p.Failure.Container = "trainer" }).settle()
			w.succeed(1).settle()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSimulator(t, 2, 2).trains()
			was := w.worker(1).UID
			c.happens(w)
			if c.kept {
				NewWithT(t).Expect(w.worker(1).UID).To(Equal(was))
			} else {
				NewWithT(t).Expect(w.worker(1).UID).NotTo(Equal(was))
			}
		})
	}
}

func TestStrandedWorkerFulfilsNoRule(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{{
		Action: v1beta1.ActionCompleteJob, OnEvents: []v1beta1.FailureEvent{v1beta1.OnTaskCompleted},
	}}}
	w.trains().restartInPlace(0).succeed(1).settle() // in one moment,
	w.run().settle()
	w.restartInPlace(0).change(0, func(p *podstate.Worker) { p.Failure.Message = "another" }).settle()
	w.succeed(1).settle() // and one after the other
	g.Expect(w.status().Phase).NotTo(Equal(v1beta1.PhaseSucceeded))
	w.run().settle()
	w.succeed(1).settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
}

func TestNobodyIsStrandedOnceWorker0HasSucceeded(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: "0-"}}
	w.trains().deletePod(0).settle()
	w.run().settle()
	was := w.worker(1).UID
	w.succeed(0).step().succeed(1).settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
	g.Expect(w.worker(1).UID).To(Equal(was))
}

func TestStrandedSuccessIsNoneOfAllWorkers(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: "0-"}}
	w.trains().succeed(1).settle()
	w.restartInPlace(0).step().succeed(0).step()
	g.Expect(w.status().Phase).NotTo(Equal(v1beta1.PhaseSucceeded))
	w.settle().run().succeed(1).settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
}

func TestSuccessCountsWhereWorkersTrainForThemselves(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Framework.Type = v1beta1.FrameworkCustom
	w.trains().restartInPlace(0).settle()
	was := w.worker(1).UID
	w.succeed(1).settle()
	w.restartInPlace(0).settle()
	g.Expect(w.worker(1).UID).To(Equal(was))

	w = newSimulator(t, 2, 2)
	w.o.Job.Spec.SuccessPolicy.Operator = v1beta1.SuccessOfAny
	w.o.Job.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: "0-"}}
	w.trains().restartInPlace(0).settle()
	w.succeed(1).settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonCompleting))
}

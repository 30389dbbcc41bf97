package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
)

func (w *simulator) suspend(yes bool) *simulator {
	w.o.Job.Spec.Suspend = yes
	w.o.Job.Generation++
	return w
}

func TestSuspendAndResume(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains().fail(1, "once").recover().suspend(true).step()
	g.Expect(w.last.DeletePods).To(BeEmpty(), "that it is stopped is in status first")
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonSuspending))
	w.restart().settle()
	g.Expect(w.o.Workers).To(BeEmpty())
	g.Expect(w.o.Core).To(BeNil(), "an admitted group keeps its resources in the books of its queue")
	g.Expect(w.o.Surplus).To(BeNil())
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSuspended))
	g.Expect(condition(w, v1beta1.ConditionSuspended)).To(Equal("True/Suspended"))
	g.Expect(w.status().Restarts).To(Equal(int32(1)), "counters are kept, and nobody who left was lost")

	w.suspend(false).settle().run().settle().run().settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
	g.Expect(w.status().ReadyReplicas).To(Equal(int32(4)))
	g.Expect(w.status().Restarts).To(Equal(int32(1)))
	told := reasons(w.events)
	g.Expect(told).To(ContainElements(v1beta1.EventSuspended, v1beta1.EventResumed))
	n := 0
	for _, reason := range told {
		if reason == v1beta1.EventSuspended {
			n++
		}
	}
	g.Expect(n).To(Equal(1), "one event tells that it was suspended")
}

func TestSuspendedFromTheBeginning(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).suspend(true).settle()
	g.Expect(w.o.Workers).To(BeEmpty())
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSuspended))
	w.suspend(false).settle().run().settle()
	g.Expect(w.status().Attempt.Number).To(Equal(int32(1)))
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
}

func TestResumedBeforeTheLastPodHasLeft(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().suspend(true).step()
	for i := range w.o.Workers {
		w.o.Workers[i].Terminating = true
	}
	w.suspend(false).settle()
	g.Expect(w.last.CreateWorkers).To(BeEmpty())
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonSuspending))
	w.o.Workers = nil
	w.settle().run().settle()
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
}

func TestActiveDeadlineStandsStillWhileSuspended(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Deadlines.ActiveSeconds = ptr.To[int32](3600)
	w.settle().pass(5 * time.Hour).settle().run().settle().pass(30 * time.Minute).step()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning), "the wait does not count")
	w.suspend(true).settle().pass(10 * time.Hour).step()
	g.Expect(w.last.RequeueAfter).To(BeZero(), "no clock runs")
	w.suspend(false).settle().run().settle()
	g.Expect(w.last.RequeueAfter).To(BeNumerically("~", 30*time.Minute, time.Minute), "the deadline is a timer of its own")
	w.pass(w.last.RequeueAfter).step()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonDeadlineExceeded))
	g.Expect(w.status().Message).To(HavePrefix("The job has trained for 1h0m0s, as long as deadlines.activeSeconds allows."))
}

func TestSchedulingTimeout(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Deadlines.SchedulingSeconds = ptr.To[int32](600)
	w.settle()
	g.Expect(w.last.RequeueAfter).To(BeNumerically("~", 10*time.Minute, time.Minute))
	w.pass(10 * time.Minute).step()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonSchedulingTimeout))
	placed := newSimulator(t, 2, 2)
	placed.o.Job.Spec.Deadlines.SchedulingSeconds = ptr.To[int32](600)
	placed.trains().pass(time.Hour).settle()
	g.Expect(placed.status().Phase).To(Equal(v1beta1.PhaseRunning))
}

func TestBelowMinTimeout(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().deletePod(1).settle()
	g.Expect(w.last.RequeueAfter).To(BeNumerically("~", 30*time.Minute, time.Minute))
	w.pass(29 * time.Minute).settle().run().settle()
	g.Expect(w.status().BelowMinSince).To(BeNil())
	w.deletePod(1).settle().pass(30 * time.Minute).step()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonBelowMinTimeout))
}

func TestErrorsOfImageAndConfiguration(t *testing.T) {
	for waiting, reason := range map[string]string{
		"ImagePullBackOff": v1beta1.ReasonImagePullFailed, "CreateContainerConfigError": v1beta1.ReasonContainerConfigError,
	} {
		t.Run(waiting, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 2).settle()
			w.change(0, func(p *podstate.Worker) { p.Scheduled, p.Waiting, p.WaitingMessage = true, waiting, "no such thing" })
			w.change(1, func(p *podstate.Worker) { p.Scheduled = true }).settle()
			g.Expect(w.status().Reason).To(Equal(reason))
			g.Expect(w.status().Message).To(HavePrefix("Worker 0 cannot start (" + waiting + ": no such thing). C"))
			w.pass(30 * time.Minute).step()
			g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseFailed), "not for ever")
			g.Expect(w.status().Message).To(ContainSubstring("no such thing"))
		})
	}
	t.Run("mended", func(t *testing.T) {
		w := newSimulator(t, 2, 2).settle()
		w.change(0, func(p *podstate.Worker) { p.Scheduled, p.Waiting = true, "ErrImagePull" }).settle()
		w.change(0, func(p *podstate.Worker) { p.Waiting = "" }).settle()
		NewWithT(t).Expect(w.status().BelowMinSince).To(BeNil())
	})
}

func TestEndedJobIsDeletedAfterItsTime(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.Cleanup.TTLSecondsAfterFinished = ptr.To[int32](60)
	w.trains()
	for i := range int32(2) {
		w.change(i, func(p *podstate.Worker) { p.Phase = corev1.PodSucceeded })
	}
	w.settle()
	g.Expect(w.last.DeleteJob).To(BeFalse())
	g.Expect(w.last.RequeueAfter).To(BeNumerically("~", time.Minute, 20*time.Second))
	g.Expect(w.pass(time.Minute).step().last.DeleteJob).To(BeTrue())
}

func TestKueue(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Labels = map[string]string{kueueQueueLabel: "team"}
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/ManagedByKueue"))
	g.Expect(w.o.Workers).To(BeEmpty())
}

func TestNothingIsSaidOfALineThatTheJobLeft(t *testing.T) {
	waits := capacity.Verdict{
		Place: 2, Waiting: 3, From: []capacity.Holder{{Job: types.NamespacedName{Namespace: "a", Name: "b"}, Workers: 2}},
	}
	for name, leave := range map[string]func(w *simulator){
		"suspended": func(w *simulator) { w.suspend(true) },
		"failed":    func(w *simulator) { w.pass(700 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 4, 4)
			w.o.Job.Spec.Deadlines.SchedulingSeconds = ptr.To[int32](600)
			w.settle()
			w.o.Verdict = waits
			w.settle()
			g.Expect(w.status().Place).To(Equal(int32(2)))
			w.o.Verdict = capacity.Verdict{}
			leave(w)
			w.settle()
			g.Expect(w.status().Place).To(BeZero())
			g.Expect(w.status().RoomFrom).To(BeEmpty())
		})
	}
}

func TestAJobThatCannotGoOnSaysWhyItIsStopped(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().suspend(true).settle()
	w.o.Invalid = "spec.x: wrong"
	w.suspend(false).settle()
	g.Expect(condition(w, v1beta1.ConditionSuspended)).To(Equal("True/" + v1beta1.ReasonInvalidSpec))
}

func TestAnAPIErrorTakesNoCompletedWorkerForALostOne(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4)
	w.o.Job.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: "0-"}}
	w.trains()
	w.change(1, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false }).settle()
	w.deletePod(1).settle()
	st := ExplainObstacle(w.o, w.now, Plan(w.o, w.now), jobstate.Obstacle{Reason: v1beta1.ReasonAPIError,
		Message: "It does not answer."})
	g.Expect(meta.IsStatusConditionTrue(st.Conditions, v1beta1.ConditionReady)).To(BeTrue(), "the core trains on")
}

func TestANewAttemptHasNoWorkersOfTheOneBefore(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2)
	w.o.Job.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: "0-"}}
	w.o.Job.Spec.Elasticity.RangeUpdate = v1beta1.RangeUpdateRestart
	w.trains()
	w.change(0, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false }).settle()
	w.o.Job.Spec.MinReplicas = 1
	w.o.Job.Generation++
	st := Plan(w.o, w.now).Status
	g.Expect(st.Attempt.Number).To(Equal(int32(2)))
	g.Expect(meta.IsStatusConditionTrue(st.Conditions, v1beta1.ConditionReady)).To(BeFalse(), "no pod of it is there")
}

func TestARestartInPlaceKeepsTheBackOff(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains().fail(1, "once").settle()
	w.pass(losses.FirstBackoff).settle()
	w.change(1, func(p *podstate.Worker) {
		p.Scheduled, p.Phase, p.Ready, p.ContainerRestarts = true, corev1.PodRunning, true, 1
	}).settle()
	retry, _ := w.status().RetryOf(1)
	g.Expect(retry.Failures).To(BeNumerically(">=", 1), "it failed before")
}

func TestAWorkerThatVolcanoTookLeavesForVolcanosReason(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains().told(3).change(3, func(p *podstate.Worker) {
		p.Disruption, p.Terminating = corev1.PodReasonPreemptionByScheduler, true
	})
	w.step().pass(statuspace.SoonDelay).step()
	g.Expect(w.status().Elasticity.LastEvictionReason).To(Equal(corev1.PodReasonPreemptionByScheduler))
	g.Expect(w.status().Elasticity.GaveWayTo).To(BeNil())
}

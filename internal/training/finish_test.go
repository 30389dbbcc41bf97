package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

func TestWorkerThatSucceedsIsNotTheEnd(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 3).trains()
	w.change(1, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false }).settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	g.Expect(w.last.CreateWorkers).To(BeEmpty(), "it left of its own will")
	g.Expect(w.status().Restarts).To(BeZero())
}

func TestSuccessAfterTheCompletionGrace(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 3).trains()
	w.change(0, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false }).step()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonCompleting))
	g.Expect(w.last.RequeueAfter).To(Equal(300 * time.Second))
	w.evict(2).step()
	g.Expect(w.last.CreateWorkers).To(BeEmpty())
	w.pass(299 * time.Second).step()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	w.pass(time.Second).step()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
	g.Expect(w.o.Workers).To(HaveLen(2), "nothing is cleaned before the end is in status")
	w.settle()
	g.Expect(w.indices()).To(Equal([]int32{0}), "the finished pod stays for its log")
	g.Expect(w.o.Core).To(BeNil())
	g.Expect(w.o.Service).To(BeEmpty())
	g.Expect(condition(w, v1beta1.ConditionReady)).To(Equal("True/Completed"))
}

func TestSuccessAtOnceWhenAllHaveEnded(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	for i := range int32(2) {
		w.change(i, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false })
	}
	g.Expect(w.step().status().Phase).To(Equal(v1beta1.PhaseSucceeded))
}

func TestFailureWithinTheCompletionGraceFailsTheJob(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	w.change(0, func(p *podstate.Worker) { p.Phase = corev1.PodSucceeded }).step()
	w.change(1, func(p *podstate.Worker) { p.Phase, p.Failure = corev1.PodFailed, podstate.Failure{ExitCode: 1} }).step()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseFailed))
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/WorkerFailed"))
	g.Expect(w.status().Message).To(
		HavePrefix("Worker 0 succeeded, but worker 1 failed with exit code 1 within the completion grace of 5m0s, "))
}

func TestCleanPodPolicies(t *testing.T) {
	for policy, left := range map[v1beta1.CleanPodPolicy][]int32{
		v1beta1.CleanPodPolicyNone: {0, 1}, v1beta1.CleanPodPolicyRunning: {0}, v1beta1.CleanPodPolicyAll: {},
	} {
		t.Run(string(policy), func(t *testing.T) {
			w := newSimulator(t, 2, 2).trains()
			w.o.Job.Spec.Cleanup.PodPolicy = policy
			w.change(0, func(p *podstate.Worker) { p.Phase = corev1.PodSucceeded }).step().pass(300 * time.Second).settle()
			NewWithT(t).Expect(w.indices()).To(Equal(left))
		})
	}
}

func TestTimeThatIsOverEndsKeptPodsToo(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	w.o.Job.Spec.Cleanup.PodPolicy = v1beta1.CleanPodPolicyNone
	w.o.Job.Spec.Deadlines.ActiveSeconds = ptr.To[int32](3600)
	w.pass(time.Hour).settle()
	g.Expect(condition(w, v1beta1.ConditionFailed)).To(Equal("True/DeadlineExceeded"))
	g.Expect(w.indices()).To(BeEmpty())
}

func TestWorkersThatNeverRanDoNotHoldUpTheEnd(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).settle().run(0, 1).settle()
	g.Expect(w.indices()).To(HaveLen(4))
	w.change(0, func(p *podstate.Worker) { p.Phase = corev1.PodSucceeded })
	w.change(2, func(p *podstate.Worker) { p.Scheduled = true }).step()
	g.Expect(w.indices()).To(Equal([]int32{0, 1}), "Volcano must not start newcomers when the training is over")
	g.Expect(w.status().Message).To(HaveSuffix("Still running, with a completion grace of 5m0s: worker 1."))
	w.change(1, func(p *podstate.Worker) { p.Phase = corev1.PodSucceeded }).step()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
}

func TestDrainedMasterThatExitsWellIsNoSuccess(t *testing.T) {
	for name, disruption := range map[string]string{"drained": "EvictionByEvictionAPI", "deleted": ""} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 2).trains()
			w.change(0, func(p *podstate.Worker) { p.Disruption = disruption }).end(corev1.PodSucceeded, 0).settle()
			g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
			w.deletePod(0).settle().run().settle()
			g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonTraining))
			g.Expect(w.status().Restarts).To(Equal(map[string]int32{"drained": 0, "deleted": 1}[name]))
		})
	}
}

func TestDeletedWorkersThatFailDoNotFailAnEndingJob(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).settle().run().settle().run(2).settle()
	w.change(0, func(p *podstate.Worker) { p.Phase = corev1.PodSucceeded })
	w.change(3, func(p *podstate.Worker) { p.Scheduled = true }).end(corev1.PodFailed, 3).step()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonCompleting))
}

func TestWorkerPlacedAfterTheEndIsALatecomer(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 3).settle().run().settle()
	g.Expect(w.indices()).To(HaveLen(3))
	for i := range int32(2) {
		w.change(i, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false })
	}
	w.restart().run(2).step()
	g.Expect(w.last.DeletePods).To(HaveLen(1), "Volcano placed it while the operator was down")
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
}

func TestMasterThatSucceededAndWentIsASuccess(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	w.change(0, func(p *podstate.Worker) { p.Phase, p.Ready = corev1.PodSucceeded, false }).deletePod(0).step()
	g.Expect(w.last.CreateWorkers).To(BeEmpty())
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonCompleting))
}

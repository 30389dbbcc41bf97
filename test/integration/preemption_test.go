package integration

import (
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Whole-gang preemption", func() {
	It("behaviour 7 of profiles: stops the youngest gang of a preempted tier, and no other, which goes on afterwards", func() {
		s := newScenario("preempt", 6)
		s.Submit(s.Job("old").Range(2, 2))
		Eventually(s.Fetch("old")).Should(testutil.Train(2), "an old job trains")
		s.Submit(s.Job("middle").Range(2, 2).Tier("small-traffic"))
		Eventually(s.Fetch("middle")).Should(testutil.Train(2), "one of a tier that nobody preempts trains")
		s.Claim("checkpoints", "/checkpoints")
		s.Submit(s.Job("young").Range(1, 2).Cooldown(time.Second).Mounts("checkpoints"))
		Eventually(s.Fetch("young")).Should(testutil.Train(2), "a young job trains, with one surplus worker")
		before := s.UIDs("old")

		s.Submit(s.Job("launch").Range(2, 2).Tier("main-traffic").Asks("1", "1Gi").Starvation(2 * time.Second))
		Eventually(s.Fetch("launch")).Should(testutil.Train(2), "the important job runs")
		Eventually(s.Fetch("young")).Should(And(testutil.HavePhase(v1beta1.PhaseSuspended),
			testutil.HaveReason(v1beta1.ReasonPreempted), testutil.HaveRestarts(0)), "the youngest was stopped whole")
		young := s.Read("young")
		Expect(young.Status.Preemption.By.String()).To(Equal(s.Namespace+"/launch"), "its status names for whom")
		Expect(young.Status.Preemption.Tier).To(Equal("main-traffic"), "and of which tier that is")
		Expect(young.Spec.Suspend).To(BeFalse(), "its spec is its user's")
		Expect(s.UIDs("old")).To(Equal(before), "nobody else lost a worker")
		Expect(s.Read("middle")).To(testutil.HavePhase(v1beta1.PhaseRunning), "nor the job of the other tier")
		Consistently(s.Fetch("young")).WithTimeout(severalCycles).Should(testutil.HavePhase(v1beta1.PhaseSuspended), "it waits")

		s.DeleteJob("launch")
		Eventually(s.Fetch("young")).Should(And(testutil.Train(2), HaveField("Status.Preemption", BeNil())), "it goes on by itself")
		Expect(s.Read("young").Status.Attempt.Number).To(BeEquivalentTo(2), "with its next attempt")
	})
})

var _ = Describe("A checkpoint", func() {
	saving := func(s *testutil.Scenario, grace int32) *testutil.JobBuilder {
		return s.Job("a").Range(2, 4).With(func(a *v1beta1.ElasticTrainingJob) { a.Spec.Checkpoint.GraceSeconds = ptr.To(grace) })
	}
	asked := func(s *testutil.Scenario) func() string {
		return func() string { return s.Worker("a", 0).Annotations[v1beta1.AnnotationCheckpointRequested] }
	}

	It("is asked of worker 0 before workers leave on the operator's word, who go once it is acknowledged", func() {
		s := newScenario("checkpoint", 4)
		s.Submit(saving(s, 600))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		s.Patch(s.Read("a"), `{"spec":{"maxReplicas":3}}`)
		Eventually(asked(s)).ShouldNot(BeEmpty(), "worker 0 is asked for a checkpoint")
		Consistently(s.Workers("a", testutil.Running)).WithTimeout(severalCycles).Should(HaveLen(4), "nobody leaves before it is saved")
		worker := s.Worker("a", 0)
		worker.Annotations[v1beta1.AnnotationCheckpointDone] = worker.Annotations[v1beta1.AnnotationCheckpointRequested]
		Expect(s.Client.Update(s.Context(), worker)).To(Succeed(), "the training saved it")
		number, err := strconv.ParseInt(worker.Annotations[v1beta1.AnnotationCheckpointDone], 10, 64)
		Expect(err).NotTo(HaveOccurred(), "the number is one")
		for _, name := range []string{"a", "a-surplus"} {
			Eventually(func() map[string]string {
				return testutil.Get(s, &schedulingv1beta1.PodGroup{}, name).Annotations
			}).Should(HaveKeyWithValue("volcano.sh/last-checkpoint-time", time.Unix(number, 0).UTC().Format(time.RFC3339)),
				"PodGroup %s tells Volcano's plugins of it", name)
		}
		Eventually(s.Workers("a")).Should(ConsistOf(0, 1, 2), "worker 3 leaves")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(3), HaveField("Status.Checkpoint", BeNil()), testutil.HaveRestarts(0)),
			"A trains on")
	})

	It("is asked of worker 0 before surplus joins, which waits for nothing", func() {
		s := newScenario("checkpoint-growth", 2)
		s.Submit(saving(s, 600))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		since := s.Read("a").Status.RunningSince.Time
		Eventually(func() time.Duration { return time.Since(since) }).Should(BeNumerically(">", jobstate.RestartTime), "for long")
		Expect(asked(s)()).To(BeEmpty(), "nothing was asked for")
		node := s.AddUnsimulatedNode(2)
		Eventually(asked(s)).ShouldNot(BeEmpty(), "worker 0 is asked for a checkpoint")
		Expect(s.Read("a").Status.Checkpoint.For).To(Equal("Growth"))
		for _, i := range []int{2, 3} {
			Expect(s.Worker("a", i).Spec.NodeName).To(Equal(node), "worker %d has its node", i)
			makeReady(s, "a", i)
		}
		Eventually(s.Fetch("a")).Should(And(testutil.Train(4), HaveField("Status.Checkpoint", BeNil()), testutil.HaveRestarts(0)),
			"A trains with four")
	})

	It("is not waited for longer than the grace", func() {
		s := newScenario("checkpoint-grace", 4)
		s.Submit(saving(s, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		s.Patch(s.Read("a"), suspend)
		Eventually(asked(s)).ShouldNot(BeEmpty(), "worker 0 is asked for a checkpoint")
		Eventually(s.Fetch("a")).Should(testutil.HaveReason(v1beta1.ReasonSuspended), "the job is suspended all the same")
	})

	It("is asked of worker 0 when Volcano evicts surplus, which trains on for the grace", func() {
		s := newScenario("checkpoint-eviction", 4)
		s.Submit(saving(s, 30))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		surplus, core := s.Worker("a", 3), s.Worker("a", 1)
		Expect(surplus.Spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds).To(BeEquivalentTo(30), "the leaver sleeps before it is told")
		Expect(*surplus.Spec.TerminationGracePeriodSeconds).To(BeNumerically(">", 30), "inside of a longer grace period")
		Expect(core.Spec.Containers[0].Lifecycle).To(BeNil(), "core leaves only when a checkpoint is saved")
		s.Hold("a", 3) // The simulated kubelet knows no grace.
		s.Evict("a", 3)
		Eventually(asked(s)).ShouldNot(BeEmpty(), "worker 0 is asked for a checkpoint")
		s.Release("a", 3)
		Eventually(s.Fetch("a")).Should(HaveField("Status.Checkpoint", BeNil()), "nobody is about to leave any more")
	})
})

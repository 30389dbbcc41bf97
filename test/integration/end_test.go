package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var _ = Describe("The end of a job", func() {
	const grace = 5 * time.Second

	It("scenario 7: worker 1 succeeding is not success; worker 0 succeeding is, after the grace; pods are cleaned", mainWay, func() {
		s := newScenario("s7", 4)
		s.Submit(s.Job("a").Range(3, 4).CompletionGrace(grace))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")

		s.Succeed("a", 1)
		Consistently(s.Fetch("a")).WithTimeout(severalCycles).Should(
			And(testutil.HavePhase(v1beta1.PhaseRunning), testutil.HaveRestarts(0)), "worker 0 still trains")
		Expect(s.Audit.Select(testutil.Doing("create", "pods"), testutil.To("a-worker-1"))).To(HaveLen(1),
			"who has left is not created anew")

		s.Succeed("a", 0)
		Eventually(s.Fetch("a")).Should(testutil.HaveReason(v1beta1.ReasonCompleting), "the others have the grace to end")
		Expect(s.Workers("a", testutil.Running)()).To(ConsistOf(2, 3), "nobody is cut off within the grace")
		Eventually(s.Fetch("a")).Should(And(
			testutil.HavePhase(v1beta1.PhaseSucceeded),
			testutil.HaveCondition(v1beta1.ConditionSucceeded, metav1.ConditionTrue, v1beta1.ReasonCompleted),
			testutil.HaveCondition(v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonCompleted),
		), "the job succeeds")
		a := s.Read("a")
		Expect(a.Status.CompletionTime.Sub(a.Status.MasterCompletionTime.Time)).To(BeNumerically(">=", grace), "after the grace")
		Expect(a.Status.Message).To(ContainSubstring("Still running when it ended: workers 2 and 3."), "and says which did not end")
		Expect(a).To(testutil.HaveRestarts(0), "an end is no failure")
		Eventually(s.Remains).Should(ConsistOf("ElasticTrainingJob a", "Pod a-worker-0", "Pod a-worker-1"),
			"only finished pods are left, for their logs")
	})

	It("scenario 7: comes before the grace has passed when every worker has ended", func() {
		s := newScenario("s7-all", 2)
		s.Submit(s.Job("a").Range(2, 2).With(func(a *v1beta1.ElasticTrainingJob) {
			a.Spec.SuccessPolicy.CompletionGraceSeconds = nil
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		Expect(s.Read("a").Spec.SuccessPolicy.CompletionGraceSeconds).To(HaveValue(BeEquivalentTo(300)), "300 s is the default")
		s.SucceedAll("a")
		Eventually(s.Fetch("a")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "nobody is waited for")
		Eventually(s.Remains).Should(ConsistOf("ElasticTrainingJob a", "Pod a-worker-0", "Pod a-worker-1"), "the rest is deleted")
	})

	It("is a failure when a worker fails within the grace", func() {
		s := newScenario("s7-fails", 2)
		s.Submit(s.Job("a").Range(2, 2).CompletionGrace(time.Minute))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		s.Succeed("a", 0)
		Eventually(s.Fetch("a")).Should(testutil.HaveReason(v1beta1.ReasonCompleting), "worker 1 has the grace to end")
		s.Fail("a", 1, 1, "AssertionError: loss is not finite")
		Eventually(s.Fetch("a")).Should(And(
			testutil.HavePhase(v1beta1.PhaseFailed),
			testutil.HaveCondition(v1beta1.ConditionFailed, metav1.ConditionTrue, v1beta1.ReasonWorkerFailed),
			testutil.BeStalled(v1beta1.ReasonWorkerFailed),
		), "the job fails")
		Expect(s.Read("a").Status.Message).To(ContainSubstring("exit code 1 (Error): AssertionError: loss is not finite"),
			"with the last words")
	})

	DescribeTable("leaves of its pods what cleanup.podPolicy says", func(policy v1beta1.CleanPodPolicy, left ...string) {
		s := newScenario("clean", 3)
		s.Submit(s.Job("a").Range(2, 3).CleanPods(policy).CompletionGrace(0))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		s.Succeed("a", 0)
		Eventually(s.Fetch("a")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "the job succeeds without a grace")
		Eventually(s.Remains).Should(ConsistOf(append(left, "ElasticTrainingJob a")), "what is not kept is deleted")
		Consistently(s.Remains).WithTimeout(severalCycles).Should(ConsistOf(append(left, "ElasticTrainingJob a")), "and nothing more")
	},
		Entry("Running", v1beta1.CleanPodPolicyRunning, "Pod a-worker-0"),
		Entry("All", suite.Long, v1beta1.CleanPodPolicyAll),
		Entry("None", v1beta1.CleanPodPolicyNone, "Pod a-worker-0", "Pod a-worker-1", "Pod a-worker-2",
			"PodGroup a", "PodGroup a-surplus", "Service a-workers"),
	)

	It("by deletion leaves no pods while somebody else's finalizer holds the job", func() {
		s := newScenario("held", 2)
		held := s.Job("a").Range(2, 2).Obj()
		held.Finalizers = []string{"example.com/hold"}
		s.Create(held)
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		s.DeleteJob("a")
		Eventually(s.Remains).Should(ConsistOf("ElasticTrainingJob a", "Service a-workers"), "who waits may have its room")
		Consistently(s.Remains).WithTimeout(severalCycles).Should(HaveLen(2), "and nothing is created")
		s.Patch(s.Read("a"), `{"metadata":{"finalizers":null}}`)
		Eventually(s.Remains).Should(BeEmpty(), "the rest goes with the job")
	})

	It("by deletion leaves nothing", func() {
		s := newScenario("deleted", 2)
		s.Submit(s.Job("a").Range(2, 4), s.Job("waits").Range(3, 3))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains, and its surplus waits")
		Eventually(s.Fetch("waits")).Should(testutil.HaveReason(v1beta1.ReasonNeverFits), "the other waits")
		s.DeleteJob("a")
		s.DeleteJob("waits")
		Eventually(s.Remains).Should(BeEmpty(), "pods, PodGroups and Services go with the job")
		Consistently(s.Remains).WithTimeout(severalCycles).Should(BeEmpty(), "and nothing is created for a job that is gone")
	})
})

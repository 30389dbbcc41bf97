package integration

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Failures", func() {
	It("scenario 8: the fourth failure fails a job with a budget of three, although every pod was new", mainWay, func() {
		s := newScenario("s8", 2)
		s.Submit(s.Job("a").Range(2, 2).With(func(a *v1beta1.ElasticTrainingJob) { a.Spec.Restarts.Max = ptr.To[int32](3) }))
		for n := range 3 {
			Eventually(s.Fetch("a")).Should(And(testutil.Train(2), testutil.HaveRestarts(n)), "A trains")
			before := s.Worker("a", n%2).UID
			s.Fail("a", n%2, 1, "error "+strings.Repeat("x", n))
			Eventually(s.Fetch("a")).Should(testutil.HaveRestarts(n+1), "failure %d is counted", n+1)
			Eventually(func() any { return s.UIDs("a")[n%2] }).Should(Not(Equal(before)), "the pod is created anew after its back-off")
		}
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		s.Fail("a", 1, 1, "the last")
		Eventually(s.Fetch("a")).Should(And(testutil.HavePhase(v1beta1.PhaseFailed),
			testutil.BeStalled(v1beta1.ReasonTooManyRestarts)), "the budget is spent")
		Expect(s.Read("a").Status.Message).To(Equal("4 restarts within 24h0m0s are more than restarts.max (3) allows. " +
			"The last: worker 1 failed with exit code 1 (Error): the last."))
	})

	It("scenario 8: the same error twice at once fails the job, with its last line", func() {
		s := newScenario("s8-twice", 2)
		s.Submit(s.Job("a").Range(2, 2))
		for n := range 2 {
			Eventually(s.Fetch("a")).Should(And(testutil.Train(2), testutil.HaveRestarts(n)), "A trains")
			s.Fail("a", 1, 1, "FileNotFoundError: /data/train.csv")
			Eventually(s.Fetch("a")).Should(testutil.HaveRestarts(n+1), "failure %d is counted", n+1)
		}
		Eventually(s.Fetch("a")).Should(And(testutil.HavePhase(v1beta1.PhaseFailed),
			testutil.BeStalled(v1beta1.ReasonSameFailureTwice)), "A is given up")
		a := s.Read("a")
		Expect(a.Status.Message).To(HaveSuffix("worker 1 failed with exit code 1 (Error): FileNotFoundError: /data/train.csv."))
		Expect(a.Status.LastFailure.Message).To(Equal("FileNotFoundError: /data/train.csv"), "the last line is kept")
	})

	It("containers that restart in place are counted once for the job when worker 0 was lost", func() {
		s := newScenario("in-place", 3)
		s.Submit(s.Job("a").Range(2, 3))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		before := s.UIDs("a")
		for i := range 3 {
			restartContainer(s, "a", i, 1, 137, "")
		}
		Eventually(s.Fetch("a")).Should(testutil.HaveRestarts(1), "the loss of worker 0 is counted")
		Consistently(s.Fetch("a")).WithTimeout(severalCycles).Should(testutil.HaveRestarts(1), "once, whichever containers exit")
		Expect(s.UIDs("a")).To(Equal(before), "everybody keeps the pod")
		restartContainer(s, "a", 1, 2, 1, "another error")
		Eventually(s.Fetch("a")).Should(testutil.HaveRestarts(2), "a second restart of the same container is another matter")
	})

	DescribeTable("scenario 10: of the rules of a failure policy the first that matches wins", func(
		phase v1beta1.JobPhase, actions ...v1beta1.FailureAction,
	) {
		s := newScenario("s10", 2)
		s.Submit(s.Job("a").Range(2, 2).With(func(a *v1beta1.ElasticTrainingJob) {
			a.Spec.FailurePolicy = &v1beta1.FailurePolicy{}
			for _, action := range actions {
				a.Spec.FailurePolicy.Rules = append(a.Spec.FailurePolicy.Rules, v1beta1.FailureRule{
					Name: string(action), Action: action, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodFailed},
				})
			}
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		s.Fail("a", 1, 1, "no")
		Eventually(s.Fetch("a")).Should(And(testutil.HavePhase(phase), testutil.HaveRestarts(1)), "the first rule decides")
	},
		Entry("FailJob first", v1beta1.PhaseFailed, v1beta1.ActionFailJob, v1beta1.ActionRestartWorker),
		Entry("RestartWorker first", v1beta1.PhaseRunning, v1beta1.ActionRestartWorker, v1beta1.ActionFailJob),
		Entry("CompleteJob", v1beta1.PhaseSucceeded, v1beta1.ActionCompleteJob, v1beta1.ActionFailJob),
	)

	DescribeTable("scenario 10: exit codes are taken as by training-operator's ExitCode", func(code int, phase v1beta1.JobPhase) {
		s := newScenario("s10-codes", 2)
		s.Submit(s.Job("a").Range(2, 2).With(func(a *v1beta1.ElasticTrainingJob) {
			permanent := &v1beta1.ExitCodes{Operator: v1beta1.ExitCodesIn}
			for code := int32(1); code < 128; code++ {
				permanent.Values = append(permanent.Values, code)
			}
			a.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{
				{Action: v1beta1.ActionFailJob, OnExitCodes: permanent},
			}}
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		s.Fail("a", 1, code, "ended")
		Eventually(s.Fetch("a")).Should(And(testutil.HavePhase(phase), testutil.HaveRestarts(1)), "the exit code decides")
	},
		Entry("1 is permanent", 1, v1beta1.PhaseFailed),
		Entry("137 is worth a retry", 137, v1beta1.PhaseRunning),
	)

	It("RestartJob creates every worker anew, as the next attempt", mainWay, func() {
		s := newScenario("restart-job", 3)
		s.Submit(s.Job("a").Range(2, 3).With(func(a *v1beta1.ElasticTrainingJob) {
			a.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{
				{Action: v1beta1.ActionRestartJob, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodFailed}},
			}}
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		before := s.UIDs("a")
		s.Fail("a", 1, 1, "no")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(3), HaveField("Status.Attempt.Number", int32(2))), "A trains again")
		Expect(s.Read("a")).To(testutil.HaveRestarts(1), "that costs one restart")
		for i, uid := range s.UIDs("a") {
			Expect(uid).NotTo(Equal(before[i]), "worker %d has a new pod", i)
		}
		Eventually(s.Events).WithArguments(s.Read("a")).Should(ContainElement(And(
			HavePrefix("Restarted: All workers are created again by rule "), HaveSuffix("Attempt 2 begins, with 2..3 workers."))))
	})

	It("scenario 15: without torchrun an eviction restarts the whole gang, and leaves the budget untouched", mainWay, func() {
		s := newScenario("s15", 3)
		s.Submit(s.Job("a").Range(2, 3).With(func(a *v1beta1.ElasticTrainingJob) {
			a.Spec.Framework.Type, a.Spec.Restarts.Max = v1beta1.FrameworkCustom, ptr.To[int32](0)
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		before := s.UIDs("a")
		s.Evict("a", 2)
		Eventually(s.Fetch("a")).Should(
			And(testutil.Train(3), HaveField("Status.Attempt.Number", int32(2)), testutil.HaveRestarts(0)),
			"A trains again, as its next attempt, and counts nothing")
		for i, uid := range s.UIDs("a") {
			Expect(uid).NotTo(Equal(before[i]), "worker %d has a new pod", i)
		}
		Eventually(s.Events).WithArguments(s.Read("a")).Should(ContainElement(And(
			HavePrefix("Restarted: All workers are created again "), ContainSubstring("worker 2 was evicted"))), "and says why")
		s.Succeed("a", 0)
		Eventually(s.Fetch("a")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "worker 0 completes it at once")
	})

	It("scenario 15: a failed rank of a gang without torchrun restarts all of it, counted and limited", mainWay, func() {
		s := newScenario("s15-rank", 3)
		s.Submit(s.Job("a").Range(2, 3).With(func(a *v1beta1.ElasticTrainingJob) {
			a.Spec.Framework.Type, a.Spec.Restarts.Max = v1beta1.FrameworkCustom, ptr.To[int32](1)
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		before := s.UIDs("a")
		restartContainer(s, "a", 1, 1, 137, "rank 1 was killed")
		Eventually(s.Fetch("a")).Should(
			And(testutil.Train(3), HaveField("Status.Attempt.Number", int32(2)), testutil.HaveRestarts(1)),
			"A trains again, as its next attempt, which costs one restart")
		for i, uid := range s.UIDs("a") {
			Expect(uid).NotTo(Equal(before[i]), "worker %d has a new pod", i)
		}
		Eventually(s.Events).WithArguments(s.Read("a")).Should(ContainElement(And(
			HavePrefix("Restarted: All workers are created again because framework.type is Custom: worker 1 failed"),
			ContainSubstring("rank 1 was killed"))), "and says why")
		s.Fail("a", 0, 1, "rank 0 failed")
		Eventually(s.Fetch("a")).Should(And(testutil.HavePhase(v1beta1.PhaseFailed),
			testutil.BeStalled(v1beta1.ReasonTooManyRestarts)), "the budget of one is spent")
	})

	It("an image that cannot be pulled is said, and is not waited for without end", func() {
		s := newScenario("image", 2)
		s.Submit(s.Job("a").Range(2, 2).Manual().With(func(a *v1beta1.ElasticTrainingJob) {
			a.Spec.Deadlines.BelowMinSeconds = ptr.To(int32(severalCycles / time.Second))
		}))
		Eventually(s.Workers("a", testutil.Bound)).Should(HaveLen(2), "A is placed")
		cannotStart(s, "a", 0, "ImagePullBackOff", "no such image")
		Eventually(s.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonImagePullFailed), "A says so")
		Expect(s.Read("a").Status.Message).To(HavePrefix("Worker 0 cannot start (ImagePullBackOff: no such image)"))
		Eventually(s.Fetch("a")).Should(And(testutil.HavePhase(v1beta1.PhaseFailed),
			testutil.BeStalled(v1beta1.ReasonBelowMinTimeout)), "and gives up")
	})
})

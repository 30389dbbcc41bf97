package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Jobs at rest", func() {
	It("scenario 12: cause no write at all for 60 s, although every object is looked at again every 5 s", SpecPriority(1), func() {
		s := newScenario("s12", 6)
		// The queue is too small for the job that waits, so what is free for it is the same all the time: its own
		// nodes and its own queue.
		s.UseQueue(s.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1, Capability: gpus(6)}))

		s.Submit(s.Job("done").Range(2, 2))
		Eventually(s.Fetch("done")).Should(testutil.Train(2), "one job trains")
		s.SucceedAll("done")
		Eventually(s.Fetch("done")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "and has finished")
		s.Submit(s.Job("shrunk").Range(2, 4).Cooldown(time.Second))
		Eventually(s.Fetch("shrunk")).Should(testutil.Train(4), "one job has surplus")
		s.Submit(s.Job("full").Range(3, 3))
		Eventually(s.Fetch("full")).Should(testutil.Train(3), "one job runs full")
		Eventually(s.Fetch("shrunk")).Should(And(testutil.Train(3), testutil.HaveReason(v1beta1.ReasonWaitingForRoom)),
			"one job gave way, its cooldown is over, and it waits for room")
		s.Submit(s.Job("waits").Range(4, 8))
		Eventually(s.Fetch("waits")).Should(testutil.HaveReason(v1beta1.ReasonUnschedulable), "one job waits in the queue")

		// Status follows within a few seconds; then everything rests.
		lastWrite := func() (time.Duration, error) {
			requests, err := s.Audit.Select(testutil.ByOperator, testutil.Change)
			if err != nil || len(requests) == 0 {
				return 0, err
			}
			return time.Since(requests[len(requests)-1].Received), nil
		}
		Eventually(lastWrite).Should(BeNumerically(">", severalCycles), "the jobs come to rest")
		began := time.Now()
		Consistently(func() ([]testutil.Request, error) {
			return s.Audit.Select(testutil.ByOperator, testutil.Change, testutil.From(began))
		}).WithTimeout(time.Minute).WithPolling(time.Second).Should(BeEmpty(), "at rest nothing is written")
	})
})

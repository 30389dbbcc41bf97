package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/testutil"
)

// Volcano schedules once a second: what has not happened within this time was decided against several times.
const severalCycles = 5 * time.Second

var _ = Describe("A gang", func() {
	It("scenario 1: is not placed in part, says why it waits, and is placed all at once when a slot appears", func() {
		s := newScenario("s1", 3)
		s.Submit(s.Job("a").Range(4, 6))
		Eventually(s.Fetch("a")).Should(And(
			testutil.Wait(v1alpha1.ReasonUnschedulable),
			testutil.HaveCondition(v1alpha1.ConditionScheduled, metav1.ConditionFalse, v1alpha1.ReasonUnschedulable),
			testutil.HaveCondition(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonUnschedulable),
		), "the reason is on the job")
		Expect(s.Read("a").Status.Message).To(And(
			MatchRegexp(`^Place \d+ of \d+ waiting in queue default: `),
			ContainSubstring("asks for the core of 4 workers (4 nvidia.com/gpu) all together. Free for it: 3 nvidia.com/gpu; "+
				"the largest gang of such workers that fits now: 3. It is short of 1 nvidia.com/gpu."),
		), "the message has the figures")
		Consistently(s.Workers("a", testutil.Bound)).WithTimeout(severalCycles).Should(BeEmpty(), "three slots do not do for four")

		appeared := time.Now()
		Expect(s.SetGPUs(s.Context(), s.Node(0), 4)).To(Succeed(), "a slot appears")
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "the core runs")
		bindings, err := s.Audit.Select(testutil.Doing("create", "pods/binding"))
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		Expect(bindings).To(HaveLen(4), "each core worker was placed once, and nobody before the slot appeared")
		Expect(bindings[0].Received).To(BeTemporally(">", appeared), "nobody was placed before the slot appeared")
		Expect(bindings[3].Received).To(BeTemporally("~", bindings[0].Received, 2*time.Second), "all were placed at once")
	})

	It("scenario 2: two jobs of 2..4 on five slots each have their two, and the fifth goes to one", func() {
		s := newScenario("s2", 5)
		s.Submit(s.Job("a").Range(2, 4), s.Job("b").Range(2, 4))
		shares := func(g Gomega) []int32 {
			a, err := s.Fetch("a")()
			g.Expect(err).NotTo(HaveOccurred(), "A is read")
			b, err := s.Fetch("b")()
			g.Expect(err).NotTo(HaveOccurred(), "B is read")
			return []int32{a.Status.ReadyReplicas, b.Status.ReadyReplicas}
		}
		Eventually(shares).Should(ConsistOf(int32(2), int32(3)), "both train, and the fifth slot is used")
		Consistently(shares).WithTimeout(severalCycles).Should(ConsistOf(int32(2), int32(3)), "nobody takes from the other")
		for _, job := range []string{"a", "b"} {
			Expect(s.Read(job)).To(And(testutil.HavePhase(v1alpha1.PhaseRunning), testutil.HaveRestarts(0),
				testutil.HaveReason(v1alpha1.ReasonWaitingForRoom)), "job %s trains and would grow", job)
		}
	})
})

package capacity

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var _ = Describe("Growth that pays", func() {
	// countSteps counts how often workers got nodes, those within a few seconds as once.
	countSteps := func(pods []corev1.Pod) (steps int) {
		var bound []time.Time
		for i := range pods {
			bound = append(bound, podstate.BoundTime(&pods[i]).Time)
		}
		slices.SortFunc(bound, time.Time.Compare)
		for i := range bound {
			if i == 0 || bound[i].Sub(bound[i-1]) > 10*time.Second {
				steps++
			}
		}
		return steps
	}
	elasticity := func(s *testutil.Scenario, job string) *v1beta1.ElasticityStatus {
		return s.Read(job).Status.Elasticity
	}

	It("changes the size at most five times while 24 places become free within two minutes", suite.Long, func() {
		s := newScenario("trickle", 2)
		s.Submit(s.Job("a").Range(2, 26).Fitting().Cooldown(30 * time.Second))
		Eventually(s.Fetch("a")).Should(testutil.Train(2))
		slots := int64(2)
		Consistently(func() error {
			slots++
			return s.SetGPUs(s.Context(), s.Node(0), min(slots, 26))
		}).WithTimeout(2 * time.Minute).WithPolling(5 * time.Second).Should(Succeed())
		Eventually(s.Fetch("a")).WithTimeout(time.Minute).Should(testutil.Train(26), "in the end it has them all")
		pods, err := s.Pods("a")
		Expect(err).NotTo(HaveOccurred())
		Expect(countSteps(pods)).To(BeNumerically("<=", 1+5), "the start, and five changes of size")
	})

	It("has no surplus join between two steps, not even one that could only wait", suite.Long, func() {
		s := newScenario("between", 1, 1, 1)
		// The model does not judge its pods, so the job tries all its surplus and some waits.
		s.Submit(s.Job("a").Range(2, 6).Paying(time.Second).Cooldown(time.Minute).Template(beyondModel))
		Eventually(s.Fetch("a")).Should(testutil.Train(3))
		Eventually(s.Workers("a")).WithTimeout(time.Minute).Should(HaveLen(3), "what waits after the step is withdrawn")
		s.AddNode(1)
		last := elasticity(s, "a").LastGrowthTime.Time
		Eventually(s.Fetch("a")).WithTimeout(2 * time.Minute).Should(testutil.Train(4))
		Expect(elasticity(s, "a").LastGrowthTime.Sub(last)).To(BeNumerically(">=", time.Minute), "it joined in the next step")
	})

	It("grows and shrinks by whole steps", func() {
		s := newScenario("steps", 7)
		s.Submit(s.Job("a").Range(2, 8).Step(3).Fitting().Cooldown(0))
		Eventually(s.Fetch("a")).Should(testutil.Train(5), "two slots are too few for another step of three")
		Consistently(s.Workers("a")).WithTimeout(several).Should(HaveLen(5))
		Expect(s.SetGPUs(s.Context(), s.Node(0), 8)).To(Succeed())
		Eventually(s.Fetch("a")).Should(testutil.Train(8))
		s.Submit(s.Job("b").Range(2, 2))
		Eventually(s.Fetch("b")).Should(testutil.Train(2))
		Eventually(s.Fetch("a")).Should(testutil.Train(5), "the third worker of the step cannot train, and left as well")
	})

	It("pauses for longer each time that it loses at once what it gained", suite.Long, func() {
		s := newScenario("thrash", 4)
		const cooldown = 20 * time.Second
		s.Submit(s.Job("a").Range(2, 4).Fitting().Cooldown(cooldown))
		var pauses []time.Duration
		for i := range 2 {
			Eventually(s.Fetch("a")).WithTimeout(time.Minute).Should(testutil.Train(4), "it grows")
			gang := fmt.Sprintf("b%d", i)
			s.Submit(s.Job(gang).Range(2, 2))
			Eventually(s.Fetch(gang)).Should(testutil.Train(2), "a gang takes the surplus")
			Eventually(func() int32 { return s.Read("a").Status.Elasticity.QuickLosses }).Should(BeEquivalentTo(i + 1))
			e := elasticity(s, "a")
			pauses = append(pauses, e.NextGrowthTime.Sub(e.LastEvictionTime.Time))
			s.DeleteJob(gang)
		}
		Expect(pauses).To(Equal([]time.Duration{cooldown, 2 * cooldown}))
	})

	It("waits until it has missed as much as a restart costs, and says the figures", func() {
		s := newScenario("pays", 4)
		s.Submit(s.Job("a").Range(2, 8).Paying(15 * time.Second).Cooldown(0))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "the first growth waits for nothing")
		began := s.Read("a").Status.RunningSince.Time
		Eventually(func() time.Duration { return time.Since(began) }).WithTimeout(time.Minute).Should(BeNumerically(">",
			jobstate.RestartTime+5*time.Second), "until then workers join the start of the others")
		Expect(s.SetGPUs(s.Context(), s.Node(0), 5)).To(Succeed())
		Eventually(func() string { return s.Read("a").Status.Message }).WithTimeout(time.Minute).Should(SatisfyAll(
			HavePrefix("4 of 8 workers ready. 1 worker more fits, and would gain"), ContainSubstring("and cost 60 GPU-seconds"),
			ContainSubstring("The job grows at ")))
		room := time.Now()
		Expect(s.SetGPUs(s.Context(), s.Node(0), 8)).To(Succeed())
		Eventually(s.Fetch("a")).WithTimeout(time.Minute).Should(testutil.Train(8))
		Expect(time.Since(room)).To(BeNumerically("<", 45*time.Second), "four workers miss as much in 15 s as one in a minute")
		pods, err := s.Pods("a")
		Expect(err).NotTo(HaveOccurred())
		Expect(countSteps(pods)).To(BeNumerically("<=", 3), "core, first growth, and all four in one step")
	})
})

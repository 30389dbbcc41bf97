package capacity

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// several is time for several evaluations of the arbiter, of which there is at most one a second.
const several = 5 * time.Second

// beyondModel adds a rule that keeps no pod from any node, and that the model does not cover.
func beyondModel(t *corev1.PodTemplateSpec) {
	t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 100, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		NodeTaintsPolicy: new(corev1.NodeInclusionPolicyHonor),
		LabelSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/of": "nobody"}},
	}}
}

var _ = Describe("A job that creates only the surplus that fits", func() {
	// created lists the pods that were created in the namespace so far.
	created := func(s *testutil.Scenario) func() ([]string, error) {
		return func() (names []string, err error) {
			requests, err := s.Audit.Select(testutil.Doing("create", "pods"))
			for _, r := range requests {
				names = append(names, r.Name)
			}
			return names, err
		}
	}

	It("never has a worker that waits, and grows when room appears", func() {
		s := newScenario("fitting", 5)
		s.Submit(s.Job("a").Range(2, 8).Fitting().Cooldown(0))
		Eventually(s.Fetch("a")).Should(testutil.Train(5), "A takes the five slots")
		Consistently(created(s)).WithTimeout(several).Should(HaveLen(5), "and asks for no sixth")

		Expect(s.SetGPUs(s.Context(), s.Node(0), 7)).To(Succeed(), "two slots appear")
		Eventually(s.Fetch("a")).Should(testutil.Train(7), "A takes them")
		Consistently(created(s)).WithTimeout(several).Should(HaveLen(7), "and asks for no eighth")
	})

	It("creates none while a gang waits for the room", func() {
		s := newScenario("fitting-waits", 8)
		s.Submit(s.Job("runs"))
		Eventually(s.Fetch("runs")).Should(testutil.Train(1), "one slot is taken")
		s.Submit(s.Job("first").Range(8, 8))
		Eventually(s.Fetch("first")).Should(testutil.Wait(v1beta1.ReasonUnschedulable), "a gang waits for eight slots")
		s.Submit(s.Job("a").Range(2, 8).Fitting().Cooldown(0))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A starts")
		Consistently(s.Workers("a")).WithTimeout(several).Should(HaveLen(2), "and does not grow")
		s.DeleteJob("first")
		Eventually(s.Fetch("a")).Should(testutil.Train(7), "A grows when nobody waits")
	})

	It("grows past a gang that asks for more than there is", func() {
		s := newScenario("fitting-impossible", 8)
		s.Submit(s.Job("first").Range(9, 9))
		Eventually(s.Fetch("first")).Should(testutil.Wait(v1beta1.ReasonNeverFits), "a gang waits for nine of eight slots")
		s.Submit(s.Job("a").Range(2, 8).Fitting().Cooldown(0))
		Eventually(s.Fetch("a")).Should(testutil.Train(8), "A uses what nobody else can use")
	})

	It("shares the room with another such job", suite.Long, func() {
		s := newScenario("fitting-two", 9)
		s.Submit(s.Job("a").Range(2, 8).Fitting().Cooldown(0), s.Job("b").Range(2, 8).Fitting().Cooldown(0))
		for _, job := range []string{"a", "b"} {
			Eventually(s.Fetch(job)).Should(testutil.HavePhase(v1beta1.PhaseRunning), "%s starts", job)
		}
		Eventually(func() (int, error) {
			a, err := s.Workers("a", testutil.Running)()
			if err != nil {
				return 0, err
			}
			b, err := s.Workers("b", testutil.Running)()
			return len(a) + len(b), err
		}).Should(Equal(9), "together they use every slot")
		Consistently(created(s)).WithTimeout(several).Should(HaveLen(9), "and neither has a worker that waits")
	})
})

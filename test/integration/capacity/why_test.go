package capacity

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// says checks what a waiting job says of its place and of room, with every figure. Words follow within a minute.
func says(s *testutil.Scenario, job string, place int32, message string) {
	GinkgoHelper()
	Eventually(s.Fetch(job)).WithTimeout(90*time.Second).Should(And(
		testutil.HavePhase(v1beta1.PhasePending),
		HaveField("Status.Place", place),
		HaveField("Status.Message", message),
		WithTransform(scheduled, Equal("False: "+message)),
	), "job %s says why it waits", job)
}

// scheduled is the condition of that name as "False: message".
func scheduled(job *v1beta1.ElasticTrainingJob) string {
	c := testutil.Condition(job, v1beta1.ConditionScheduled)
	return fmt.Sprintf("%s: %s", c.Status, c.Message)
}

var _ = Describe("A waiting job says why", func() {
	It("place 2 of 3, asks 8, free 5, largest 4", func() {
		s := newScenario("why", 8)
		s.Submit(s.Job("runs").Range(2, 3))
		Eventually(s.Fetch("runs")).Should(testutil.Train(3), "five of eight GPUs are free, and one is held by surplus")
		// The node has 256 cores.
		s.Submit(s.Job("a").Range(7, 7))
		Eventually(s.Fetch("a")).Should(HaveField("Status.Place", int32(1)), "A is first in line")
		s.Submit(s.Job("b").Range(8, 8).CPUs(60))
		Eventually(s.Fetch("b")).Should(HaveField("Status.Place", int32(2)), "B is second")
		s.Submit(s.Job("c").Range(9, 12))

		line := "Place %d of 3 in queue " + s.Namespace + ", for the core of %s as a whole. "
		room := "Free for it: 5 nvidia.com/gpu; the largest gang of such workers that fits now: 5. It is short of 2 nvidia.com/gpu."
		holder := " Surplus that may give way: " + s.Namespace + "/runs (1)."
		says(s, "a", 1, fmt.Sprintf(line+room, 1, "7 workers (7 nvidia.com/gpu)")+holder)
		never := "It does not fit even if nothing else runs. At most %d such workers would fit into %s; short of %s. " +
			"Ask for less (minReplicas, requests), or have an administrator add nodes or raise the limit of the Queue; " +
			"it then starts by itself."
		says(s, "b", 2, fmt.Sprintf(line+never, 2, "8 workers (8 nvidia.com/gpu, 480 cpu)", 4, "8 nvidia.com/gpu, 256 cpu", "224 cpu"))
		says(s, "c", 3, fmt.Sprintf(line+never, 3, "9 workers (9 nvidia.com/gpu)", 8, "8 nvidia.com/gpu", "1 nvidia.com/gpu"))

		By("those behind move up when somebody leaves the line")
		s.DeleteJob("a")
		Eventually(s.Fetch("b")).Should(HaveField("Status.Place", int32(1)), "B is first now")
		Eventually(s.Fetch("c")).Should(HaveField("Status.Place", int32(2)), "C is second now")
		Expect(s.Audit.Select(testutil.Doing("delete", "pods"), testutil.To("runs-worker-2"))).To(BeEmpty(), "nobody left in vain")
	})

	It("on fragmented nodes: 5 free as 2+2+1 take no worker of 4 GPUs", func() {
		s := newScenario("why-fragments", 8, 8, 8)
		for name, held := range map[string]int64{"x": 6, "y": 6, "z": 7} {
			s.Submit(s.Job(name).GPUs(held))
			Eventually(s.Fetch(name)).Should(testutil.Train(1), "%s holds %d GPUs of a node", name, held)
		}
		s.Submit(s.Job("a").GPUs(4))
		Eventually(s.Fetch("a")).Should(HaveField("Status.Place", int32(1)), "A is first in line")
		s.Submit(s.Job("b").GPUs(2).Range(3, 3))
		line := "Place %d of 2 in queue " + s.Namespace + ", for the core of %s as a whole. " +
			"Free for it: 5 nvidia.com/gpu; the largest gang of such workers that fits now: %d. %s"
		says(s, "a", 1, fmt.Sprintf(line, 1, "1 worker (4 nvidia.com/gpu)", 0,
			"Enough is free in all, but in pieces too small for its workers."))
		says(s, "b", 2, fmt.Sprintf(line, 2, "3 workers (6 nvidia.com/gpu)", 2, "It is short of 1 nvidia.com/gpu."))
		for _, name := range []string{"a", "b"} {
			Expect(s.Workers(name, testutil.Bound)()).To(BeEmpty(), "Volcano does not place %s either", name)
		}
	})

	It("the limit of its queue", func() {
		s := shared.World.NewScenario(GinkgoT(), "why-limit", 8)
		s.UseQueue(s.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1, Capability: gpus(3)}))
		s.Submit(s.Job("a").Range(4, 4))
		says(s, "a", 1, "Place 1 of 1 in queue "+s.Namespace+", for the core of 4 workers (4 nvidia.com/gpu) as a whole. "+
			"It does not fit even if nothing else runs. At most 3 such workers would fit into 8 nvidia.com/gpu; short of "+
			"1 nvidia.com/gpu by the limit of its Queue. Ask for less (minReplicas, requests), or have an administrator add nodes or "+
			"raise the limit of the Queue; it then starts by itself.")
	})

	It("what it asks beyond the model, of which it claims nothing", func() {
		s := newScenario("why-unknown", 8)
		s.Submit(s.Job("a").Range(9, 9).Template(beyondModel))
		Eventually(s.Fetch("a")).WithTimeout(90*time.Second).Should(HaveField("Status.Message", And(
			HavePrefix("Place 1 of 1 in queue "+s.Namespace+", for the core of 9 workers (9 nvidia.com/gpu) as a whole. "+
				"Only Volcano can tell whether it fits, because it asks for topology spread with a policy for nodes. Volcano says: "),
			Not(ContainSubstring("Free for it")),
		)), "it leaves the word to Volcano")
	})

	It("and the doctor's condition on our configuration is True", func() {
		s := newScenario("why-configured", 2)
		s.Submit(s.Job("a").Range(2, 2))
		Eventually(s.Fetch("a")).Should(And(testutil.Train(2),
			testutil.HaveCondition(v1beta1.ConditionSchedulerConfigured, metav1.ConditionTrue, v1beta1.ReasonConfigured)),
			"Volcano has all that Tideline needs")
	})
})

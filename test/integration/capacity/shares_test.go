package capacity

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/test/testutil"
)

// Answers of simulate and whatif rest on this order.
var _ = Describe("Volcano", func() {
	It("places first the gang of the queue that holds the least of its share, and not the oldest", func() {
		s := shared.World.NewScenario(GinkgoT(), "least", 8)
		queue := func(name string) *schedulingv1beta1.Queue {
			return s.NewQueueNamed(s.Namespace+name, schedulingv1beta1.QueueSpec{Weight: 1, Deserved: gpus(4)})
		}
		has, hasNot := queue("-has"), queue("-has-not")
		s.UseQueue(has)
		s.Submit(s.Job("x").Range(4, 4), s.Job("y").Range(4, 4))
		Eventually(s.Fetch("x")).Should(testutil.Train(4))
		Eventually(s.Fetch("y")).Should(testutil.Train(4))
		s.Submit(s.Job("old").Range(4, 4))
		Eventually(s.Workers("old")).Should(HaveLen(4))
		s.UseQueue(hasNot)
		s.Submit(s.Job("young").Range(4, 4))
		Eventually(s.Workers("young")).Should(HaveLen(4))
		Expect(s.Read("young").Status.Queue).To(Equal(hasNot.Name))
		s.DeleteJob("y")
		Eventually(s.Fetch("young")).Should(testutil.Train(4))
		Expect(s.Workers("old", testutil.Bound)()).To(BeEmpty(), "its queue holds its share")
	})
})

package merge

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// owned gives a merge to an owner.
func owned(user string) func(*v1beta1.MergeJobSpec) {
	return func(s *v1beta1.MergeJobSpec) { s.Owner = user }
}

var _ = Describe("T11: caps of a user", func() {
	It("hold for his merges and trainings together, in whichever pools, and other people's merges pass", func(ctx SpecContext) {
		p := newPool("capped", 40)
		p.NewQueueNamed("beside", schedulingv1beta1.QueueSpec{Weight: 1})
		p.Join("authors")
		p.Create(testutil.Profile("authors").PerUser(10).Obj())
		p.Submit(p.Job("training").Range(3, 3).Owner("alice"))
		Eventually(p.Fetch("training")).Should(testutil.Train(3))
		for _, name := range []string{"first", "second", "third", "others"} {
			p.Due(name, 50*time.Hour)
		}
		p.Create(p.merge("first").With(owned("alice")).Pods(4, 4).Obj())
		Eventually(p.running("first")).Should(Equal(4))
		p.Create(p.merge("second").With(owned("alice")).Pods(4, 4).Obj(),
			p.merge("third").With(owned("alice")).Pool("beside").Pods(4, 8).Obj())
		for _, name := range []string{"second", "third"} {
			Eventually(p.FetchMerge(name)).Should(And(haveSummary("Queued (at a cap)"), haveReason(v1beta1.ReasonQuotaExceeded),
				HaveField("Status.Message", ContainSubstring("alice may hold at most 10 nvidia.com/gpu (profile authors). 7 "+
					"nvidia.com/gpu in use, and the job asks for 4 nvidia.com/gpu."))))
		}
		p.Create(p.merge("others").With(owned("bob")).Pods(4, 4).Obj())
		Eventually(p.running("others")).Should(Equal(4), "it passes")
		Expect(p.MergePods(ctx, "second")).To(BeEmpty())
		Expect(p.MergePods(ctx, "third")).To(BeEmpty())

		p.DeleteJob("training")
		Eventually(func() []int {
			second, err := p.running("second")()
			Expect(err).NotTo(HaveOccurred())
			third, err := p.running("third")()
			Expect(err).NotTo(HaveOccurred())
			return []int{second, third}
			// The third begins with 4 where only one of the training's three workers is gone by then.
		}).Should(Or(Equal([]int{4, 0}), HaveExactElements(Equal(0), And(BeNumerically(">=", 4), BeNumerically("<=", 6)))),
			"one of the two has what is left")
	})
})

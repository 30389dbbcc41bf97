package install

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/upgrade"
)

var _ = Describe("A version with other field names", func() {
	It("leaves jobs that this version refuses, and says what to write instead", func(ctx SpecContext) {
		before, now := formerVersion.render(ctx), thisVersion.render(ctx)
		r := &rollout{target: newTarget(ctx)}
		Expect(r.SpeakVersion(v1beta1.OwnerVersion)).To(Succeed(), "the version of the API that both have")
		r.apply(ctx, before.objects, r.next())
		r.replace(ctx, before)
		s := r.NewScenario(GinkgoT(), "former", 2)
		s.Create(upgrade.FormerJob(s, "old"))
		Eventually(s.Fetch("old")).Should(testutil.Train(1), "it trains, as the version before has it")

		r.apply(ctx, now.objects, r.next())
		r.replace(ctx, now)
		Eventually(s.Fetch("old")).Should(testutil.BeStalled(v1beta1.ReasonInvalidSpec), "this version does not take it")
		for _, former := range upgrade.FormerFields {
			Expect(s.Read("old").Status.Message).To(ContainSubstring(former.Refusal), "it says what to write instead")
			err := s.Client.Create(s.Context(), upgrade.WithSpec(s.Job("new").Range(1, 1), former.Content))
			Expect(err).To(MatchError(ContainSubstring(former.Refusal)), "a new job is refused in the same words")
		}
		s.DeleteJob("old")
		Eventually(s.Workers("old")).Should(BeEmpty(), "it leaves nothing")
		s.Submit(s.Job("new").Range(1, 1))
		Eventually(s.Fetch("new")).Should(testutil.Train(1), "the names of this version train")
	})
})

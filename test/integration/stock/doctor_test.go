package stock

import (
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

const ours = "../../../config/volcano/volcano-scheduler.conf"

// On a cluster of its own, whose configuration it changes.
var _ = Describe("When an admin follows the doctor", Serial, func() {
	It("the doctor is content, and the operator leaves shrinking to Volcano", func(ctx SpecContext) {
		in := suite.Own(ctx, options())
		s := in.NewScenario(GinkgoT(), "doctor", 8)
		before := fill(s, s.Job("a").Cooldown(cooldown))
		Expect(schedulerConfigured(s.Read("a"))).To(Equal("False/Incomplete"), "A says that Volcano's configuration is incomplete")

		said, code, err := in.Command(ctx, "doctor")
		Expect(err).NotTo(HaveOccurred(), "the doctor runs")
		Expect(code).To(Equal(1), "something is to be mended:\n%s", said)
		Expect(said).To(And(sayLacks(),
			MatchRegexp(`(?m)^WRONG Volcano's configuration does not let surplus give way as it should: `),
			MatchRegexp(`(?m)^      -> Apply config/volcano.*: have the line actions: "enqueue, allocate, preempt, reclaim, backfill"`),
			MatchRegexp(`(?m)^1 of \d+ checks found something to mend\.$`),
		), "the configuration is the one thing, and how to mend it")

		conf, err := os.ReadFile(ours)
		Expect(err).NotTo(HaveOccurred(), "config/volcano is read")
		Expect(in.Cluster.SetSchedulerConf(ctx, string(conf))).To(Succeed(), "the admin applies config/volcano")
		said, code, err = in.Command(ctx, "doctor")
		Expect(err).NotTo(HaveOccurred(), "the doctor runs")
		Expect(code).To(BeZero(), "nothing is left to mend:\n%s", said)
		Expect(said).To(And(Not(ContainSubstring("WRONG")), Not(ContainSubstring("of another version")),
			MatchRegexp(`[Tt]he cluster is set up for Tideline\.\n$`)), "and it says so")
		Eventually(s.Fetch("a")).Should(WithTransform(schedulerConfigured, Equal("True/Configured")), "A sees it too")

		s.Submit(s.Job("b").Starvation(0).Range(2, 2).CompletionGrace(time.Second))
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "B is served")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(6), testutil.HaveReason(v1beta1.ReasonCoolingDown)), "A gave way")
		Expect(s.UIDs("a")).To(HaveLen(6), "with two workers of %v", before)
		Expect(s.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByVolcano)).To(HaveLen(2), "Volcano evicted two")
		Expect(s.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByOperator)).To(BeEmpty(), "the operator does not act")
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "giving way is no failure")

		s.Submit(s.Job("c").Starvation(0).Range(5, 5))
		Consistently(s.Workers("a", testutil.Running)).WithTimeout(several).Should(HaveLen(6), "nobody leaves for what cannot fit")
		Expect(s.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByOperator)).To(BeEmpty(), "the operator does not act")
	})
})

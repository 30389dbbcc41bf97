package report

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

var _ = Describe("A dispute", Ordered, func() {
	var f *fixture
	BeforeAll(func(ctx SpecContext) { f = begin(ctx, func(*fixture) []ledger.Entries { return nil }) })

	It("behaviour 6: why a job waited is answered with who held what, also by an operator that was killed", func(ctx SpecContext) {
		s := f.NewScenario(GinkgoT(), "why", 2)
		s.Submit(s.Job("held").Range(2, 2).Owner("bob"))
		Eventually(s.Fetch("held")).Should(HaveField("Status.Phase", v1beta1.PhaseRunning))
		s.Submit(s.Job("ctr").Range(1, 1).Owner("alice"))
		Eventually(s.Fetch("ctr")).Should(HaveField("Status.Reason", v1beta1.ReasonUnschedulable))
		at := time.Now().UTC().Truncate(time.Second).Add(time.Second)
		Eventually(time.Now).Should(BeTemporally(">", at.Add(time.Second)), "times of statuses are whole seconds")
		s.DeleteJob("held")
		Eventually(s.Fetch("ctr")).Should(HaveField("Status.Phase", v1beta1.PhaseRunning))
		why := func() (string, error) {
			said, _, err := f.Command(ctx, "why", s.Namespace+"/ctr", "--at", at.Format(time.RFC3339), "--config", f.configuration)
			return said, err
		}
		answer := And(ContainSubstring("Job ctr in namespace "+s.Namespace+", "+at.Format(time.DateTime)+" UTC"),
			ContainSubstring("It waited (Unschedulable) since "), MatchRegexp(`In queue \S+ 2 pods held something at that time:`),
			MatchRegexp(`bob +`+s.Namespace+`/held +core +2 +2 gpu`), MatchRegexp(`What happened next:\n  \S+ \S+ Ran: `))
		Eventually(why).Should(answer)
		f.Operator.Kill()
		Expect(why()).To(answer, "what was decided is kept")
		Expect(f.Operator.Start(ctx)).To(Succeed())
		said, code, err := f.Command(ctx, "why", s.Namespace+"/nobody", "--at", at.Format(time.RFC3339), "--config", f.configuration)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(Equal(1))
		Expect(said).To(ContainSubstring("nothing is known of job nobody"))
	})
})

package integration

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/integration/badinput"
	"github.com/tideline-io/tideline/test/testutil"
)

// That the lists of cases are whole is held by their own test.
var _ = Describe("Bad input", func() {
	refuse("scenario 14: is refused", v1beta1.ElasticTrainingJobKind, badinput.Cases(),
		slices.Concat(badinput.Updates(), badinput.Accepted()))
	refuse("bad input of merges: is refused", v1beta1.MergeJobKind, badinput.MergeCases(),
		slices.Concat(badinput.MergeUpdates(), badinput.AcceptedByMerges()))
	refuse("bad input of profiles: is refused", v1beta1.ResourceQuotaProfileKind, badinput.ProfileCases(), nil)
	refuse("bad input of reports: is refused", v1beta1.CostReportKind, badinput.ReportCases(), nil)

	It("scenario 14: a tier that the operator does not know stalls the job, and nothing is created", func() {
		s := newScenario("tier", 2)
		s.Submit(s.Job("a").Range(1, 2).Tier("platinum"))
		Eventually(s.Fetch("a")).Should(And(testutil.BeStalled(v1beta1.ReasonUnknownTier), testutil.HaveCondition(
			v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonUnknownTier)), "the job says so")
		Expect(s.Read("a").Status.Message).To(Equal(`spec.tier: the operator's configuration has no tier "platinum"; it has `+
			`exploratory, small-traffic, main-traffic. Set spec.tier to one of these.`), "and what to do")
		Consistently(s.Remains).WithTimeout(severalCycles).Should(ConsistOf("ElasticTrainingJob a"), "nothing is created")
	})
})

// refuse has the specs of one kind. It is the API server that answers, and its whole answer counts.
func refuse(name, kind string, cases []badinput.Case, updates []badinput.Update) {
	namespace := metav1.NamespaceDefault
	if kind == v1beta1.ResourceQuotaProfileKind || kind == v1beta1.CostReportKind {
		namespace = ""
	}
	for _, c := range cases {
		It(name+" with path, value and rule: "+c.What, func(ctx SpecContext) {
			o, err := c.Object(namespace)
			Expect(err).NotTo(HaveOccurred(), "the case is well formed")
			Expect(shared.World.Client.Create(ctx, o, client.DryRunAll)).To(MatchError(c.Refusal(o.GetName())), "the whole answer")
		})
	}

	for _, u := range updates {
		how := " as a change: "
		if u.Says == "" {
			how = " otherwise, and accepted is the change: "
		}
		It(name+how+u.What, func() {
			s := newScenario("s14")
			o, err := u.Object(s.Namespace)
			Expect(err).NotTo(HaveOccurred(), "the case is well formed")
			s.Create(o)
			err = s.Client.Patch(s.Context(), o, client.RawPatch(types.MergePatchType, []byte(u.Patch)))
			if u.Says == "" {
				Expect(err).NotTo(HaveOccurred(), "it is accepted")
				return
			}
			Expect(err).To(MatchError(u.Refusal(o.GetName())), "the whole answer")
		})
	}

	It(name+", and not because of the job that the cases begin with", func(ctx SpecContext) {
		o, err := badinput.Case{Kind: kind, Patch: `{}`}.Object(namespace)
		Expect(err).NotTo(HaveOccurred(), "the case is well formed")
		Expect(shared.World.Client.Create(ctx, o, client.DryRunAll)).To(Succeed(), "it is accepted")
	})
}

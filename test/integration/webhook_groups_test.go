package integration

import (
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

const ivy = "ivy@example.com"

// recordGroups has the specs of webhooks that are about the groups of owners.
func recordGroups(scenario func(name string, gpus ...int64) *testutil.Scenario) {
	It("hold an owner to the tiers of a group, and let nobody write of which groups they are", func() {
		const interns, leads = "interns", "leads"
		s := scenario("groups", 1)
		guard(s)
		s.Patch(&v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}},
			`{"spec":{"members":[{"kind":"Group","name":"interns","standing":"Intern","maxTier":"exploratory"},`+
				`{"kind":"Group","name":"leads"}]}}`)
		hers := as(s, ivy, "edit", interns, "readers")
		submit := func(c client.Client, job *testutil.JobBuilder) func() error {
			return func() error { return c.Create(s.Context(), job.Obj(), client.DryRunAll) }
		}
		job := func() *testutil.JobBuilder { return s.Job("a").Tier("main-traffic").Asks("1", "1Gi") }
		forged := func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Submitter = &v1beta1.Submitter{Username: ivy, Groups: []string{leads}}
		}
		refusal := fmt.Sprintf(denied+`spec.tier: Invalid value: "main-traffic": profile %s does not allow this tier; it allows `+
			`exploratory to %s as a member of interns: use one of these, or ask an administrator to allow it`, s.Namespace, ivy)
		Eventually(submit(hers, job())).Should(MatchError(refusal), "the whole answer")
		Expect(submit(hers, job().With(forged))()).To(MatchError(refusal), "she is of the groups that the API server names")
		Expect(submit(as(s, alice, "edit"), job())()).To(Succeed(), "whoever is in no group may have all tiers")
		Expect(submit(as(s, ivy, "edit", interns, leads), job())()).To(Succeed(), "of two groups the higher tier counts")

		Expect(hers.Create(s.Context(), s.Job("a").With(forged).Obj())).To(Succeed(), "she may have an exploratory job")
		Expect(s.Read("a").Spec.Submitter.Groups).To(Equal([]string{interns}), "of the groups that the profile names")
		Eventually(s.Fetch("a")).Should(testutil.Train(1), "it trains")
		recorded := &v1beta1.Submitter{Username: ivy, Groups: []string{interns}}
		for _, forgery := range []any{map[string]any{"username": ivy, "groups": []string{leads}}, map[string]any{"username": alice},
			nil} {
			patch, err := json.Marshal(map[string]any{"spec": map[string]any{"submitter": forgery}})
			Expect(err).NotTo(HaveOccurred())
			Expect(hers.Patch(s.Context(), s.Read("a"), client.RawPatch(types.MergePatchType, patch))).To(Succeed())
			Expect(s.Read("a").Spec.Submitter).To(Equal(recorded), "%v: what was recorded stays", forgery)
		}

		merge := mergeOf(s).With(func(spec *v1beta1.MergeJobSpec) {
			spec.Submitter = &v1beta1.Submitter{Username: ivy, Groups: []string{leads}}
		}).Obj()
		Expect(hers.Create(s.Context(), merge, client.DryRunAll)).To(Succeed(), "she creates a merge")
		Expect(merge.Spec.Submitter.Groups).To(Equal([]string{interns}), "with the same groups")

		_ = as(s, deployer, "edit")
		ci := as(s, deployer, "tideline-assign-owner", leads)
		named := s.Job("b").Owner(ivy)
		Eventually(submit(ci, named)).Should(Succeed(), "CI creates a job for her")
		created := named.Obj()
		Expect(ci.Create(s.Context(), created, client.DryRunAll)).To(Succeed())
		Expect(created.Spec.Submitter).To(Equal(&v1beta1.Submitter{Username: deployer, Groups: []string{leads}}), "which is recorded")
	})
}

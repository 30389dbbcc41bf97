package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// deniedMerge is how a refusal of a merge begins.
const deniedMerge = `admission webhook "validate.mergejobs.tideline.io" denied the request: ` +
	`MergeJob.tideline.io "a" is invalid: `

// admitMerges has the specs of webhooks that are about merges. Each creation is a dry run, so that the operator reads no store.
func admitMerges(scenario func(name string, gpus ...int64) *testutil.Scenario) {
	submit := func(s *testutil.Scenario, c client.Client, job *testutil.MergeBuilder) func() error {
		return func() error { return c.Create(s.Context(), job.Obj(), client.DryRunAll) }
	}

	It("make whoever creates a merge its owner", func() {
		s := scenario("merge-owner")
		job := mergeOf(s).Obj()
		Expect(as(s, alice, "edit").Create(s.Context(), job, client.DryRunAll)).To(Succeed(), "alice creates a merge")
		Expect(job.Spec.Owner).To(Equal(alice), "it is hers")
	})

	It("let nobody name somebody else as the owner of a merge without the right to assign-owner", func() {
		s := scenario("merge-assign")
		ci := as(s, deployer, "edit")
		bobs := mergeOf(s).With(func(spec *v1beta1.MergeJobSpec) { spec.Owner = bob })
		Expect(submit(s, ci, bobs)()).To(MatchError(fmt.Sprintf(
			deniedMerge+`spec.owner: Forbidden: %q is not %q, who creates the merge. To name another owner, a user needs the verb `+
				`assign-owner on mergejobs.tideline.io in namespace %s: leave the owner out, or ask an administrator to bind ClusterRole `+
				`tideline-assign-owner`, bob, deployer, s.Namespace)), "the whole answer")
		_ = as(s, deployer, "tideline-assign-owner")
		Eventually(submit(s, ci, bobs)).Should(Succeed(), "with the right it is accepted")
	})

	It("let nobody have a store read by a Secret that they may not read", func() {
		s := scenario("merge-secret")
		// Who may create merges and read no Secret.
		_ = as(s, alice, "tideline-view")
		hers := as(s, alice, "tideline-edit")
		other := mergeOf(s).With(func(spec *v1beta1.MergeJobSpec) { spec.Store.S3.CredentialsRef.Name = "other" })
		refusal := func(secret string) string {
			return fmt.Sprintf(deniedMerge+`spec.store.s3.credentialsRef.name: Forbidden: to use Secret %q, a user needs the right `+
				`to get it in namespace %s, which %q does not have: name a Secret that you may read, or ask an administrator for `+
				`the right`, secret, s.Namespace, alice)
		}
		Eventually(submit(s, hers, mergeOf(s))).Should(MatchError(refusal(testutil.StoreSecret)), "the whole answer")
		allowAlice(s, "get", "secrets", testutil.StoreSecret)
		Eventually(submit(s, hers, mergeOf(s))).Should(Succeed(), "with the right to get it she may")
		Expect(submit(s, hers, other)()).To(MatchError(refusal("other")), "that one alone")
	})

	It("let nobody run merges as a ServiceAccount as which they could not run a pod", func() {
		s := scenario("merge-account")
		_ = as(s, alice, "tideline-view")
		hers := as(s, alice, "tideline-edit")
		allowAlice(s, "get", "secrets", testutil.StoreSecret)
		Eventually(submit(s, hers, mergeOf(s))).Should(Succeed(), "the default one is for everybody")
		named := mergeOf(s).With(func(spec *v1beta1.MergeJobSpec) { spec.Template.Spec.ServiceAccountName = "merger" })
		Expect(submit(s, hers, named)()).To(MatchError(fmt.Sprintf(
			deniedMerge+`spec.template.spec.serviceAccountName: Forbidden: to run pods as ServiceAccount "merger", a user needs the `+
				`right to create pods in namespace %s, or to use serviceaccounts merger there. %q has neither: leave `+
				`serviceAccountName out, or ask an administrator for one of these rights`, s.Namespace, alice)), "the whole answer")
		allowAlice(s, "use", "serviceaccounts", "merger")
		Eventually(submit(s, hers, named)).Should(Succeed(), "with the right to use it she may")
	})

	It("refuse a merge that the operator's configuration does not allow, and a cron line that never comes true", func() {
		s := scenario("merge-configuration")
		hers := as(s, alice, "edit")
		Expect(submit(s, hers, mergeOf(s))()).To(Succeed(), "without a mistake it is accepted")
		for _, c := range []struct {
			change func(*v1beta1.MergeJobSpec)
			says   string
		}{
			{func(spec *v1beta1.MergeJobSpec) { spec.Store.S3.Endpoint = "http://169.254.169.254" },
				`spec.store.s3.endpoint: Invalid value: "http://169.254.169.254": is not a server that the operator's configuration ` +
					`allows (merges.endpoints); it allows aws: use one of these, or ask an administrator to add it`},
			{func(spec *v1beta1.MergeJobSpec) {
				spec.Store = v1beta1.ModelStore{Type: v1beta1.StoreFile, File: &v1beta1.FileStore{Path: "/etc"}}
			}, `spec.store.file.path: Invalid value: "/etc": is outside the folder that the operator's configuration allows for ` +
				`stores of type File (merges.localStores, --allow-local-stores): it allows none, so use type S3`},
			{func(spec *v1beta1.MergeJobSpec) { spec.Pool = "default" },
				`spec.pool: Invalid value: "default": is not a pool of the operator's configuration (merges.pools), which has ` +
					`tideline-merge: use one of these`},
			{func(spec *v1beta1.MergeJobSpec) { spec.Tier = "platinum" },
				`spec.tier: Invalid value: "platinum": is not a tier of the operator's configuration, which has exploratory, ` +
					`small-traffic, main-traffic: use one of these`},
			{func(spec *v1beta1.MergeJobSpec) {
				spec.Tier = "small-traffic"
				spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"memory": resource.MustParse("1Gi")},
					Limits:   corev1.ResourceList{"memory": resource.MustParse("2Gi")},
				}
			}, `spec.template.spec.containers[0].resources.limits[memory]: Invalid value: "2Gi": must equal the request (1Gi), ` +
				`because tier small-traffic is MemoryGuaranteed: remove one of the two, or choose another tier`},
			{func(spec *v1beta1.MergeJobSpec) { spec.Schedule = &v1beta1.MergeSchedule{Cron: "0 0 30 2 *"} },
				`spec.schedule: Invalid value: cron line "0 0 30 2 *" never comes true, because no month that it names has such a day: ` +
					`write minute, hour, day of the month, month and day of the week, as in 30 2 * * 1-5, or @daily and the like`},
		} {
			Expect(submit(s, hers, mergeOf(s).With(c.change))()).To(MatchError(deniedMerge+c.says), "the whole answer")
		}
	})
}

// mergeOf is a merge of the scenario's namespace whose store is read by a Secret.
func mergeOf(s *testutil.Scenario) *testutil.MergeBuilder {
	return testutil.Merge("a").In(s.Namespace).Store(v1beta1.ModelStore{
		Type: v1beta1.StoreS3, S3: &v1beta1.S3Store{
			Bucket: "models", CredentialsRef: v1beta1.ObjectRef{Name: testutil.StoreSecret},
		},
	})
}

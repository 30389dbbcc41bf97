package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// edit patches an object as a user does.
func edit(s *testutil.Scenario, c client.Client, o client.Object, patch string) func() error {
	return func() error { return c.Patch(s.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))) }
}

// judgeChanges has the specs of webhooks that are about changes.
func judgeChanges(scenario func(name string, gpus ...int64) *testutil.Scenario) {
	It("keep owner and submitter of a job that is replaced, and let an owner change by right", func() {
		s := scenario("replace")
		hers := as(s, alice, "edit")
		Expect(hers.Create(s.Context(), s.Job("a").Obj())).To(Succeed(), "alice creates a job")
		created := s.Read("a")
		replace := func(c client.Client) func() error {
			return func() error {
				manifest := s.Job("a").Range(1, 3).Obj()
				manifest.ResourceVersion = s.Read("a").ResourceVersion
				return c.Update(s.Context(), manifest)
			}
		}
		his := as(s, bob, "edit")
		Eventually(replace(his)).Should(Succeed(), "bob replaces it by a manifest without an owner")
		Expect(s.Read("a").Spec.MaxReplicas).To(BeEquivalentTo(3), "by what it says")
		Expect(s.Read("a").Spec.Owner).To(Equal(alice), "it is hers")
		Expect(s.Read("a").Spec.Submitter).To(Equal(created.Spec.Submitter), "as she created it")
		Expect(edit(s, his, s.Read("a"), `{"spec":{"owner":null}}`)()).To(Succeed(), "nor does an edit remove the owner")
		Expect(s.Read("a").Spec.Owner).To(Equal(alice), "it is hers")

		take := edit(s, his, s.Read("a"), `{"spec":{"owner":"bob@example.com"}}`)
		Expect(take()).To(MatchError(fmt.Sprintf(denied+`spec.owner: Forbidden: the owner is %q. To make %q the owner, a user needs `+
			`the verb assign-owner on elastictrainingjobs.tideline.io in namespace %s, which %[2]q does not have: leave the owner as `+
			`it is, or ask an administrator to bind ClusterRole tideline-assign-owner`, alice, bob, s.Namespace)), "the whole answer")
		_ = as(s, bob, "tideline-assign-owner")
		Eventually(take).Should(Succeed(), "with the right he may")
		Expect(s.Read("a").Spec.Submitter.Username).To(Equal(alice), "she is the submitter still")
		backup := s.Read("a").DeepCopy()
		Expect(s.Client.Delete(s.Context(), s.Read("a"))).To(Succeed(), "the job is deleted")
		Eventually(func() error {
			_, err := s.Fetch("a")()
			return err
		}).ShouldNot(Succeed(), "it is gone")
		backup.ResourceVersion, backup.UID = "", ""
		Expect(hers.Create(s.Context(), backup.DeepCopy())).NotTo(Succeed(), "alice cannot restore what is his")
		Expect(his.Create(s.Context(), backup)).To(Succeed(), "who may assign owners restores a backup")
		Expect(s.Read("a").Spec.Submitter.Username).To(Equal(alice), "with its submitter")
	})

	It("let a tier rise by right, and fall without", func() {
		s := scenario("raise")
		guard(s)
		hers := as(s, alice, "edit")
		Expect(hers.Create(s.Context(), s.Job("a").Asks("1", "1Gi").Obj())).To(Succeed(), "alice creates a job")
		raise := edit(s, hers, s.Read("a"), `{"spec":{"tier":"main-traffic"}}`)
		refusal := fmt.Sprintf(denied+`spec.tier: Forbidden: to raise the tier of a job from exploratory to main-traffic, a user `+
			`needs the right to approve resourcequotaprofiles.tideline.io %s, which %q does not have: ask a user who has it, or ask `+
			`an administrator to bind ClusterRole tideline-approve`, s.Namespace, alice)
		Eventually(raise).Should(MatchError(refusal), "the whole answer")
		Expect(edit(s, hers, s.Read("a"), `{"spec":{"tier":"small-traffic"}}`)()).To(MatchError(ContainSubstring(
			`spec.tier: Invalid value: "small-traffic": profile `+s.Namespace+` does not allow this tier`)), "nor to a closed tier")
		letApprove(s, alice)
		Eventually(raise).Should(Succeed(), "with the right to approve she may")
		Expect(edit(s, as(s, bob, "edit"), s.Read("a"), `{"spec":{"tier":"exploratory"}}`)()).To(Succeed(), "down it goes without")
	})

	It("ask again about what a job runs as, and what a merge reads its store by", func() {
		s := scenario("rights")
		_ = as(s, alice, "tideline-view")
		hers := as(s, alice, "tideline-edit")
		s.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "trainer"}})
		job := s.Job("a").With(func(job *v1beta1.ElasticTrainingJob) { job.Spec.Suspend = true })
		s.Submit(job)
		use := edit(s, hers, s.Read("a"), `{"spec":{"template":{"spec":{"serviceAccountName":"trainer"}}}}`)
		Eventually(use).Should(MatchError(ContainSubstring(
			`spec.template.spec.serviceAccountName: Forbidden: to run workers as ServiceAccount "trainer"`)), "alice may not use it")
		allowAlice(s, "use", "serviceaccounts", "trainer")
		Eventually(use).Should(Succeed(), "with the right to use it she may")

		merge := mergeOf(s).With(func(spec *v1beta1.MergeJobSpec) { spec.Suspend = true }).Obj()
		s.Create(merge)
		rotate := edit(s, hers, merge, `{"spec":{"store":{"s3":{"credentialsRef":{"name":"other"}}}}}`)
		Expect(rotate()).To(MatchError(ContainSubstring(
			`spec.store.s3.credentialsRef.name: Forbidden: to use Secret "other"`)), "alice may not read it")
		allowAlice(s, "get", "secrets", "other")
		Eventually(rotate).Should(Succeed(), "with the right to get it she may")
		Expect(edit(s, hers, merge, `{"spec":{"template":{"spec":{"serviceAccountName":"mighty"}}}}`)()).To(MatchError(ContainSubstring(
			`spec.template.spec.serviceAccountName: Forbidden: to run pods as ServiceAccount "mighty"`)), "nor that account")
		Expect(edit(s, hers, merge, `{"spec":{"template":{"spec":{"serviceAccountName":"trainer"}}}}`)()).To(Succeed(), "but this one")
	})

	It("let people reserve who may not set a team's share", func() {
		s := scenario("reserve")
		guard(s)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1beta1.GroupVersion.Group}, Resources: []string{"resourcequotaprofiles"},
			Verbs: []string{"get", "patch", "create"},
		}}}
		s.Create(role)
		DeferCleanup(func(ctx SpecContext) { Expect(s.Client.Delete(ctx, role)).To(Succeed(), "the role is removed") })
		bindAll(s, alice, role.Name)
		hers, err := s.As(alice)
		Expect(err).NotTo(HaveOccurred(), "alice is connected")
		profile := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
		reserve := edit(s, hers, profile, `{"spec":{"reservations":[{"name":"launch","replicas":1,"resources":{"nvidia.com/gpu":"1"},`+
			`"until":"2020-01-01T00:00:00Z","jobRef":{"name":"a"},"owner":"alice@example.com"}]}}`)
		Eventually(reserve).Should(Succeed(), "she reserves room")
		share := edit(s, hers, profile, `{"spec":{"queue":{"weight":9},"caps":{"perJob":[{"resource":"cpu","max":"9"}]}}}`)
		refusal := func(field string) string {
			return fmt.Sprintf(`spec.%s: Forbidden: to write more of a profile than spec.reservations and spec.dataSets, a user needs `+
				`the verb set-share on resourcequotaprofiles.tideline.io %s, which %q does not have: change only these, or ask an `+
				`administrator to bind ClusterRole tideline-set-share`, field, s.Namespace, alice)
		}
		Expect(share()).To(MatchError(And(ContainSubstring(refusal("queue.weight")), ContainSubstring(refusal("caps")))),
			"and nothing else")
		other := testutil.Profile(s.Namespace + "-2").Obj()
		Expect(hers.Create(s.Context(), other)).To(MatchError(ContainSubstring(`more of a profile than spec.reservations`)),
			"nor another profile")
		bindAll(s, alice, "tideline-set-share")
		Eventually(share).Should(Succeed(), "with the right she may")
		Expect(s.Client.Get(s.Context(), client.ObjectKeyFromObject(profile), profile)).To(Succeed())
		Expect(profile.Spec.Caps.PerJob).To(HaveExactElements(HaveField("Max", resource.MustParse("9"))), "it is written")
	})
}

// bindAll gives a user a role in the whole cluster.
func bindAll(s *testutil.Scenario, user, role string) {
	GinkgoHelper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	s.Create(binding)
	DeferCleanup(func(ctx SpecContext) { Expect(s.Client.Delete(ctx, binding)).To(Succeed(), "the right is taken away") })
}

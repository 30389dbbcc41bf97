package olm

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

const alice, bob = "alice@example.com", "bob@example.com"

// wrongJobsAreRefused holds that the webhooks check jobs, and say at which field and what to write.
func wrongJobsAreRefused(s *testutil.Scenario) {
	GinkgoHelper()
	Expect(s.Client.Create(s.Context(), s.Job("wrong").Tier("urgent").Obj())).To(MatchError(
		`admission webhook "validate.elastictrainingjobs.tideline.io" denied the request: ElasticTrainingJob.tideline.io "wrong" is `+
			`invalid: spec.tier: Invalid value: "urgent": is not a tier of the operator's configuration, which has exploratory, `+
			`small-traffic, main-traffic: use one of these`), "the whole answer")
	Expect(as(s, alice, "edit").Create(s.Context(), s.Job("wrong").Owner(bob).Obj())).To(MatchError(And(
		ContainSubstring(`spec.owner: Forbidden: %q is not %q, who creates the job`, bob, alice),
		ContainSubstring("leave the owner out"),
	)), "another owner takes a right")
}

// approvalTakesARight holds that a job waits until a user approves it who may.
func approvalTakesARight(s *testutil.Scenario) {
	GinkgoHelper()
	s.Join(s.Namespace)
	profile := testutil.Profile(s.Namespace).Tiers("exploratory", "main-traffic").Obj()
	profile.Spec.Tiers[1].RequiresApproval = true
	s.Create(profile)
	Eventually(func() (string, error) {
		err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(profile), profile)
		return profile.Status.Queue, err
	}).Should(Equal(s.Namespace), "the team has a Queue")
	s.Submit(s.Job("a").Range(2, 2).Tier("main-traffic").Asks("1", "1Gi"))
	Eventually(s.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonAwaitingApproval), "it is held")

	Expect(approve(s, as(s, alice, "edit"))).To(MatchError(fmt.Sprintf(
		`admission webhook "approval.tideline.io" denied the request: ElasticTrainingJob.tideline.io "a" is invalid: `+
			`metadata.annotations[tideline.io/approval]: Forbidden: to approve a job, or to remove an approval, a user needs the `+
			`right to approve resourcequotaprofiles.tideline.io %s, which %q does not have: ask a user who has it, or ask an `+
			`administrator to bind ClusterRole tideline-approve`, s.Namespace, alice)), "the whole answer")
	may := &rbacv1.ClusterRoleBinding{
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: bob}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tideline-approve"},
	}
	may.Name = "bob-approves"
	s.Create(may)
	bobs := as(s, bob, "edit")
	Eventually(func() error { return approve(s, bobs) }).Should(Succeed(), "bob may")
	Eventually(s.Fetch("a")).Should(testutil.Train(2), "it trains")
}

// approve asks for an approval of job a, as somebody.
func approve(s *testutil.Scenario, c client.Client) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"72h"}}}`, v1beta1.AnnotationApprove)
	return c.Patch(s.Context(), s.Read("a"), client.RawPatch("application/merge-patch+json", patch))
}

// as is a client of a user who has a ClusterRole in the scenario's namespace.
func as(s *testutil.Scenario, user, role string) client.Client {
	GinkgoHelper()
	letIn(s, user, role)
	c, err := s.As(user)
	Expect(err).NotTo(HaveOccurred(), "%s is connected", user)
	Eventually(func() error {
		return c.List(s.Context(), &v1beta1.ElasticTrainingJobList{}, client.InNamespace(s.Namespace))
	}).Should(Succeed(), "the API server has seen the binding")
	return c
}

// letIn binds a user to a ClusterRole in the scenario's namespace.
func letIn(s *testutil.Scenario, user, role string) {
	GinkgoHelper()
	binding := &rbacv1.RoleBinding{
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	binding.Namespace, binding.GenerateName = s.Namespace, "test-"
	s.Create(binding)
}

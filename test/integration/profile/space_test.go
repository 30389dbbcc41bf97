package profile

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/cli/space"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Space of a team", Serial, func() {
	// exampleAccount gives the account of docs/examples/prune.yaml its rights in a namespace, and acts as it.
	exampleAccount := func(ctx context.Context, namespace string) client.Client {
		GinkgoHelper()
		content, err := os.ReadFile("../../../docs/examples/prune.yaml")
		Expect(err).NotTo(HaveOccurred(), "the example is read")
		text := strings.NewReplacer("namespace: ads", "namespace: "+namespace, "tideline-prune-ads", "tideline-prune-"+namespace).
			Replace(string(content))
		objects := map[string]client.Object{
			"Role": &rbacv1.Role{}, "RoleBinding": &rbacv1.RoleBinding{}, "ClusterRole": &rbacv1.ClusterRole{},
			"ClusterRoleBinding":               &rbacv1.ClusterRoleBinding{},
			"ValidatingAdmissionPolicy":        &admissionregistrationv1.ValidatingAdmissionPolicy{},
			"ValidatingAdmissionPolicyBinding": &admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		}
		for _, document := range strings.Split(text, "\n---\n") {
			kind := struct{ Kind string }{}
			Expect(yaml.Unmarshal([]byte(document), &kind)).To(Succeed())
			if o := objects[kind.Kind]; o != nil {
				Expect(yaml.UnmarshalStrict([]byte(document), o)).To(Succeed())
				if strings.HasPrefix(kind.Kind, "Role") {
					o.SetNamespace(namespace)
				}
				Expect(shared.World.Client.Create(ctx, o)).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
			}
		}
		account, err := shared.World.As("system:serviceaccount:"+namespace+":tideline-prune", "system:serviceaccounts",
			"system:authenticated")
		Expect(err).NotTo(HaveOccurred(), "it connects")
		return account
	}

	It("is given back by a claim's own rule, and never what a running or suspended job may need", func(ctx SpecContext) {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
			spec.DataSets = []v1beta1.ProfileDataSet{{Name: "clicks", Versions: []v1beta1.DataVersion{{Version: "1", Claim: "clicks-1"}}}}
		}))
		account := exampleAccount(ctx, ads.Namespace)
		// after runs a command as it would run after so long, until the API server knows the account's rights.
		after := func(later time.Duration, args ...string) string {
			GinkgoHelper()
			var out strings.Builder
			Eventually(func(g Gomega) {
				var errs strings.Builder
				out.Reset()
				clock := func() time.Time { return time.Now().Add(later) }
				connection := cli.Connected(account)
				root := cli.Root("tideline", space.AskSpace(connection, clock), space.PruneClaims(connection, clock))
				code := cli.Execute(ctx, root, args, strings.NewReader(""), &out, &errs)
				g.Expect(code).To(BeZero(), errs.String())
			}).Should(Succeed())
			return out.String()
		}
		prune := func(later time.Duration) string { GinkgoHelper(); return after(later, "prune", "-n", ads.Namespace) }
		// goes holds for a claim that is gone, or that the volume's protection holds on to for a moment.
		goes := func(name string) bool {
			GinkgoHelper()
			p := &corev1.PersistentVolumeClaim{}
			err := shared.World.Client.Get(ctx, client.ObjectKey{Namespace: ads.Namespace, Name: name}, p)
			Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
			return err != nil || p.DeletionTimestamp != nil
		}
		for _, name := range []string{"out", "clicks-1", "mine"} {
			ads.Claim(name, "/data/"+name)
		}
		for _, name := range []string{"out", "clicks-1"} {
			ads.Patch(testutil.Get(ads.Scenario, &corev1.PersistentVolumeClaim{}, name),
				`{"metadata":{"annotations":{"tideline.io/prune-unused-after":"1h","tideline.io/unused-since":"2026-01-01T00:00:00Z"}}}`)
		}
		ads.Submit(ads.job("a", 1, 1).With(func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.DataSets = []v1beta1.JobDataSet{{Name: "clicks", Version: "1"}}
			job.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "out", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "out"},
			}}}
		}))
		Eventually(ads.Fetch("a")).Should(testutil.Train(1))

		By("a job that runs, and is suspended for months")
		Expect(prune(0)).To(ContainSubstring("/out: took off the note that it is unused; it is used."))
		ads.Patch(ads.Read("a"), `{"spec":{"suspend":true}}`)
		Eventually(ads.Fetch("a")).Should(testutil.HaveReason(v1beta1.ReasonSuspended))
		Expect(prune(5000 * time.Hour)).To(Equal("No claim is due to be deleted.\n"))
		Expect(after(0, "space", "-n", ads.Namespace)).To(And(
			MatchRegexp(`/out +1Gi +- +ElasticTrainingJob a +1h +keep: is used`),
			MatchRegexp(`/clicks-1 +1Gi +clicks:1 +ElasticTrainingJob a +1h +keep: is used`),
			MatchRegexp(`/mine +1Gi +- +- +- +keep: is unused, and has no rule`)))

		By("a job that has ended")
		ads.Patch(ads.Read("a"), `{"spec":{"suspend":false}}`)
		Eventually(ads.Fetch("a")).Should(testutil.Train(1))
		ads.SucceedAll("a")
		Eventually(ads.Fetch("a")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded))
		Expect(prune(time.Minute)).To(ContainSubstring("/out: noted that it is unused as of now."))
		Expect(prune(50 * time.Minute)).To(Equal("No claim is due to be deleted.\n"))
		Expect(prune(90 * time.Minute)).To(ContainSubstring("/out: deleted 1Gi, because it is unused since "))
		Expect([]bool{goes("out"), goes("mine"), goes("clicks-1")}).To(Equal([]bool{true, false, false}),
			"what has no rule stays, and what the profile lists")

		By("a version that may leave the profile")
		whole := func(g Gomega) string {
			var out strings.Builder
			later := func() time.Time { return time.Now().Add(2 * time.Hour) }
			root := cli.Root("tideline", space.PruneClaims(cli.Connected(shared.World.Client), later))
			code := cli.Execute(ctx, root, []string{"prune", "--profile", "ads"}, strings.NewReader(""), &out, GinkgoWriter)
			g.Expect(code).To(BeZero(), "the API server refuses while the profile's status names a user")
			return out.String()
		}
		Eventually(whole).Should(ContainSubstring("/clicks-1: took clicks:1 out of the profile, because it is unused since "))
		Expect(read("ads")()).To(HaveField("Spec.DataSets", BeEmpty()))
		Eventually(whole).Should(ContainSubstring("/clicks-1: deleted 1Gi"))
	})

	It("is not at the mercy of who may not delete it", func(ctx SpecContext) {
		ads := newTeam("ads")
		exampleAccount(ctx, ads.Namespace)
		ads.Claim("out", "/data/out")
		role := &rbacv1.Role{Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "patch"}},
		}}
		role.Name, role.Namespace = "patches", ads.Namespace
		ads.Create(role)
		testutil.BindUser(ads.Scenario, "someone", "Role", role.Name)
		someone, err := shared.World.As("someone")
		Expect(err).NotTo(HaveOccurred())
		annotate := func(c client.Client, value string) error {
			p := &corev1.PersistentVolumeClaim{}
			p.Namespace, p.Name = ads.Namespace, "out"
			return c.Patch(ctx, p, client.RawPatch(types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1beta1.AnnotationPruneAfter, value)))
		}
		tried := 0
		Eventually(func() error {
			tried++ // another value each time, because nothing is asked about one that stays
			return annotate(someone, fmt.Sprintf("%dh", tried))
		}).Should(MatchError(ContainSubstring("have tideline prune delete a claim, and someone may not delete it: ask for")))
		Expect(annotate(shared.World.Client, "30d")).To(Succeed(), "who may delete it may")
		p := testutil.Get(ads.Scenario, &corev1.PersistentVolumeClaim{}, "out")
		Expect(someone.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))).
			To(Succeed(), "all else may be changed")
	})
})

package olm

import (
	"fmt"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
	"github.com/tideline-io/tideline/test/testutil/upgrade"
)

// The specs are the life of one installation, in order.
var _ = Describe("The bundle of another version", Ordered, func() {
	var r *rollout
	var before, now bundle
	var jobs *upgrade.Jobs
	BeforeAll(func(ctx SpecContext) {
		previous := upgrade.Previous(ctx, thisRoot)
		before = bundleOf(previous.Root)
		now = bundleOf(thisRoot).above(before)
		r = subscribed(ctx, before, previous.Program)
		jobs = upgrade.StartJobs(r.NewScenario(GinkgoT(), "upgrade", 6))
	})

	It("replaces the one before it, and no job notices", func(ctx SpecContext) {
		configuration := &corev1.ConfigMap{}
		configuration.Namespace, configuration.Name = testutil.OperatorNamespace, "tideline-configuration"
		Expect(r.Client.Patch(ctx, configuration, client.RawPatch("application/merge-patch+json",
			[]byte(`{"data":{"note.txt":"mine"}}`)))).To(Succeed(), "an admin edits the bundle's configuration")

		jobs.StayAsTheyAre("the upgrade by OLM", func() {
			r.offer(ctx, before, now)
			r.follow(ctx, now, "", before.csv)
		})
		AddReportEntry(fmt.Sprintf("OLM had %d pods run one after another for the upgrade.", r.pods))
		Expect(r.Client.Get(ctx, client.ObjectKeyFromObject(configuration), configuration)).To(Succeed())
		Expect(configuration.Data).To(HaveLen(1), "docs/olm.md says that an upgrade overwrites it")
		r.expectDefinitions(ctx, now)
		Eventually(granted).WithArguments(ctx, r.Client).WithTimeout(installation).Should(ConsistOf(rightsUnder(now.csv)...),
			"rights of the version before go")
	})

	It("has jobs go on to work", func() { jobs.Work() })

	It("refuses wrong jobs, and says where and what to do", func() { wrongJobsAreRefused(jobs.Scenario) })

	It("lets approve who may", func() { approvalTakesARight(r.NewScenario(GinkgoT(), "approval", 2)) })
})

// rollout is an installation that OLM upgrades.
type rollout struct {
	*testutil.Installation

	olm     *lifecycleManager
	pod     types.UID // whom the process stands for
	process *process
	pods    int // that were ever run
}

// subscribed starts a cluster on which OLM installs a bundle, and its program runs; empty for that of this version. Tests speak
// the version of the API that all bundles have.
func subscribed(ctx SpecContext, b bundle, program string) *rollout {
	GinkgoHelper()
	r := &rollout{Installation: suite.Bare(ctx, cluster.Options{GPUNodes: 1, GPUsPerNode: 256})}
	Expect(r.SpeakVersion(v1beta1.OwnerVersion)).To(Succeed(), "the API server has this version")
	var err error
	r.olm, err = startOLM(ctx, r.Installation, b.folder)
	Expect(err).NotTo(HaveOccurred(), "OLM runs and has a catalog with the bundle")
	subscribe(ctx, r.Client)
	r.follow(ctx, b, program, "")
	// OLM goes on with a plan that it has not noted as complete, and would write the definitions of this bundle over later ones.
	awaitPlan(ctx, r.Client, b.csv)
	return r
}

// offer offers a bundle that replaces the one that is installed.
func (r *rollout) offer(ctx SpecContext, before, now bundle) {
	GinkgoHelper()
	r.pods = 0
	Expect(r.olm.offer(ctx, before.folder, now.folder)).To(Succeed(), "OLM sees the catalog with the new version")
}

// follow runs whatever pod OLM has the operator run, until OLM has installed a bundle for good and the one that was replaced is
// gone, and until the operator answers webhooks.
func (r *rollout) follow(ctx SpecContext, b bundle, program, replaced string) {
	GinkgoHelper()
	csv := object("v1alpha1", "ClusterServiceVersion", b.csv)
	Eventually(func(g Gomega) {
		r.keepUp(ctx, testutil.OperatorOptions{Program: program, Kinds: upgrade.Kinds(b.objects)})
		g.Expect(text(ctx, r.Client, subscription(), "status", "installedCSV")).To(Equal(b.csv), "OLM has resolved and applied it")
		if replaced != "" {
			g.Expect(gone(ctx, r.Client, object("v1alpha1", "ClusterServiceVersion", replaced))).To(BeTrue(), "%s goes", replaced)
			g.Expect(called(ctx, r.Client, replaced)).To(BeEmpty(), "its webhooks go")
		}
		r.expectCertificate(ctx, g, b.csv)
		g.Expect(text(ctx, r.Client, csv, "status", "phase")).To(Equal("Succeeded"), "the operator is installed")
	}).WithTimeout(2*installation).Should(Succeed(), "%s is installed", b.csv)
	r.process.answers(ctx, r.Installation, csv)
}

// keepUp does what a kubelet does: it ends the process of a pod that is gone, and runs the pod that there is. OLM may replace a
// pod before its operator was ever ready.
func (r *rollout) keepUp(ctx SpecContext, o testutil.OperatorOptions) {
	GinkgoHelper()
	pods, err := podsOf(ctx, r.Client)
	Expect(err).NotTo(HaveOccurred(), "the operator's pods are read")
	if slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.UID == r.pod }) {
		return
	}
	Expect(r.StopOperator()).To(Succeed(), "the operator ends with its pod, and never asked for more than it may")
	if len(pods) == 1 {
		place(ctx, r.Client)
		r.pod = pods[0].UID
		r.pods++
		r.process = launch(ctx, r.Installation, o)
	}
}

// expectCertificate holds that the pod has the certificate that is there, and that the certificate is of a ClusterServiceVersion.
// While it belongs to the one before, it will go with that, and the pod will be replaced.
func (r *rollout) expectCertificate(ctx SpecContext, g Gomega, csv string) {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = testutil.OperatorNamespace, deployment().Name+"-service-cert"
	g.Expect(r.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed(), "there is a certificate")
	g.Expect(secret.OwnerReferences).To(HaveEach(HaveField("Name", csv)), "it stays")
	pods, err := podsOf(ctx, r.Client)
	g.Expect(err).NotTo(HaveOccurred(), "the operator's pods are read")
	g.Expect(pods).To(ConsistOf(And(
		HaveField("UID", r.pod),
		HaveField("Annotations", HaveKeyWithValue("olmcahash", secret.Annotations["olmcahash"])),
	)), "the operator serves it")
}

// expectDefinitions holds that the API server has the definitions of a bundle.
func (r *rollout) expectDefinitions(ctx SpecContext, b bundle) {
	GinkgoHelper()
	definitions, _ := upgrade.Split(b.objects)
	Expect(definitions).NotTo(BeEmpty(), "%s has definitions", filepath.Base(b.folder))
	for _, o := range definitions {
		want, has := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, want)).To(Succeed(), "%s is one", o.GetName())
		Expect(r.Client.Get(ctx, client.ObjectKeyFromObject(want), has)).To(Succeed(), "%s is there", o.GetName())
		Expect(has.Spec.Versions).To(HaveLen(len(want.Spec.Versions)), "%s has its versions", o.GetName())
		for i := range want.Spec.Versions {
			Expect(has.Spec.Versions[i].Schema).To(Equal(want.Spec.Versions[i].Schema), "%s is the new one", o.GetName())
		}
	}
}

// OLM does not change definitions while an object is stored that the new ones do not take, as far as it checks that: types, enums
// and bounds, but no rules in CEL. It tries again for a minute.
var _ = Describe("The bundle of a version with other field names", Ordered, func() {
	It("is replaced once no job is left that does not fit, and works on until then", func(ctx SpecContext) {
		former := upgrade.Former(ctx, thisRoot)
		before := bundleOf(former.Root)
		now := bundleOf(thisRoot).above(before)
		r := subscribed(ctx, before, former.Program)
		s := r.NewScenario(GinkgoT(), "former", 2)
		s.Create(upgrade.FormerJob(s, "old"))
		Eventually(s.Fetch("old")).Should(testutil.Train(1), "it trains, as the version before has it")
		pods := s.UIDs("old")

		r.offer(ctx, before, now)
		Eventually(func() (string, error) {
			plan, err := text(ctx, r.Client, subscription(), "status", "installPlanRef", "name")
			if err != nil {
				return "", err
			}
			return text(ctx, r.Client, object("v1alpha1", "InstallPlan", plan), "status", "message")
		}).WithTimeout(installation).Should(And(
			ContainSubstring(s.Namespace+`/old": updated validation is too restrictive: [].spec.successPolicy: `),
			ContainSubstring("must be of type object"),
		), "OLM says which job does not fit, and where")
		Expect(podsOf(ctx, r.Client)).To(ConsistOf(HaveField("UID", r.pod)), "the operator of the version before stays")
		Expect(s.UIDs("old")).To(Equal(pods), "the job trains on")

		s.DeleteJob("old")
		Eventually(s.Workers("old")).Should(BeEmpty(), "it leaves nothing")
		r.follow(ctx, now, "", before.csv)
		r.expectDefinitions(ctx, now)
		s.Submit(s.Job("new").Range(1, 1))
		Eventually(s.Fetch("new")).Should(testutil.Train(1), "the names of this version train")
	})
})

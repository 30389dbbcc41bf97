package olm

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/story"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// The specs are the life of one installation, in order.
var _ = Describe("The bundle", Ordered, func() {
	var in *testutil.Installation
	var csv *unstructured.Unstructured
	var this bundle
	BeforeAll(func(ctx SpecContext) {
		this = bundleOf(thisRoot)
		in = suite.Bare(ctx, cluster.Options{GPUNodes: 1, GPUsPerNode: 256})
		_, err := startOLM(ctx, in, this.folder)
		Expect(err).NotTo(HaveOccurred(), "OLM runs and has a catalog with the bundle")
	})

	It("is resolved and installed", func(ctx SpecContext) {
		subscribe(ctx, in.Client)
		awaitPlan(ctx, in.Client, this.csv)
		place(ctx, in.Client)
		csv = awaitInstalled(ctx, in.Client, this.csv)
	})

	It("has the rights that it asks for, and those that OLM gives to whoever has webhooks", func(ctx SpecContext) {
		Eventually(granted).WithArguments(ctx, in.Client).Should(ConsistOf(rightsUnder(csv.GetName())...),
			"bindings to its ServiceAccount")
	})

	// Of every kind that an operator brings, OLM gives admins all verbs, and so also those that are no verbs of Kubernetes.
	It("lets admins of a namespace name the owners of jobs", func() {
		s := in.NewScenario(GinkgoT(), "admin")
		letIn(s, alice, "admin")
		Eventually(func() (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: alice,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: s.Namespace, Verb: "assign-owner", Group: v1beta1.GroupVersion.Group, Resource: "elastictrainingjobs",
				},
			}}
			err := s.Client.Create(s.Context(), review)
			return review.Status.Allowed, err
		}).Should(BeTrue(), "docs/olm.md says so")
	})

	It("runs as its Deployment says, with the rights that OLM gave it", func(ctx SpecContext) {
		operate(ctx, in, csv)
	})

	It("shows scenario 1: a gang is placed whole or not at all", func() {
		story.GangIsPlacedWhole(in.NewScenario(GinkgoT(), "s1", 3))
	})

	It("shows scenario 3: a running job makes room, and grows back", func() {
		story.MakesRoom(in.NewScenario(GinkgoT(), "s3", 8))
	})

	It("makes the pool of merges, which a bundle cannot hold, for the first of them", func(ctx SpecContext) {
		s := in.NewScenario(GinkgoT(), "merges", 1)
		s.Create(testutil.Merge("first").In(s.Namespace).Store(v1beta1.ModelStore{
			Type: v1beta1.StoreS3, S3: &v1beta1.S3Store{Bucket: "models", CredentialsRef: v1beta1.ObjectRef{Name: "model-store"}},
		}).Obj())
		Eventually(func() (string, error) {
			queue := gang.NewQueue()
			err := in.Client.Get(ctx, client.ObjectKey{Name: config.DefaultPool}, queue)
			return gang.QueueState(queue), err
		}).Should(Equal(gang.QueueOpen), "the pool opens")
	})

	It("is found by the doctor", func(ctx SpecContext) {
		said, code, err := in.Command(ctx, "doctor")
		Expect(err).NotTo(HaveOccurred(), "the doctor runs")
		Expect(code).To(BeZero(), "it finds nothing to do")
		Expect(said).To(And(
			ContainSubstring("OK    Tideline's webhooks set the owners of jobs, and check owners, ServiceAccounts and shares.\n"),
			ContainSubstring("OK    The operator's ServiceAccount has every right of its role.\n"),
		), "whatever OLM named its webhooks and roles")
	})

	It("is removed without its jobs", func(ctx SpecContext) {
		s := in.NewScenario(GinkgoT(), "removed", 4)
		s.Submit(s.Job("a").Range(2, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "a job trains")
		before := s.UIDs("a")

		Expect(in.StopOperator()).To(Succeed(), "the operator ends as with its pod, and never asked for more than it may")
		for _, o := range []client.Object{subscription(), csv} {
			Expect(in.Client.Delete(ctx, o)).To(Succeed(), "%s is deleted", o.GetName())
		}
		Eventually(gone).WithArguments(ctx, in.Client, deployment()).WithTimeout(installation).Should(BeTrue(), "the Deployment goes")
		Eventually(granted).WithArguments(ctx, in.Client).WithTimeout(installation).Should(
			ConsistOf("kube-system/tideline-controller-manager-service-auth-reader"), "its rights go, but for one that OLM forgets")
		Eventually(called).WithArguments(ctx, in.Client, csv.GetName()).WithTimeout(installation).Should(BeEmpty(), "its webhooks go")

		Expect(s.Read("a").Status.Phase).To(Equal(v1beta1.PhaseRunning), "the job stays")
		Expect(s.UIDs("a")).To(Equal(before), "its workers keep their pods")
		testutil.Get(s, &schedulingv1.PriorityClass{}, "tideline-exploratory")
		Expect(s.Client.Create(s.Context(), s.Job("b").Obj())).To(Succeed(), "no webhook holds up a new job")
	})
})

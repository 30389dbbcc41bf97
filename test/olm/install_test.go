package olm

import (
	"context"
	"net/http"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/story"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// OLM's own pace: it looks again at what is not ready after some seconds, and at all else less often.
const installation = 2 * time.Minute

// The specs are the life of one installation, in order.
var _ = Describe("The bundle", Ordered, func() {
	var in *testutil.Installation
	var csv *unstructured.Unstructured
	var operator *process
	BeforeAll(func(ctx SpecContext) {
		in = suite.Bare(ctx, cluster.Options{GPUNodes: 1, GPUsPerNode: 256})
		bundle, err := filepath.Abs("../../bundle")
		Expect(err).NotTo(HaveOccurred(), "the bundle has a path")
		Expect(startOLM(ctx, in, bundle)).To(Succeed(), "OLM runs and has a catalog with the bundle")
	})

	It("is resolved and installed", func(ctx SpecContext) {
		subscribe(ctx, in.Client)
		field := func(o *unstructured.Unstructured, path ...string) func() (string, error) {
			return func() (string, error) { return text(ctx, in.Client, o, path...) }
		}
		Eventually(field(subscription(), "status", "installPlanRef", "name")).WithTimeout(installation).ShouldNot(BeEmpty(),
			"the package of the catalog is resolved")
		plan, err := text(ctx, in.Client, subscription(), "status", "installPlanRef", "name")
		Expect(err).NotTo(HaveOccurred(), "the Subscription is read")
		Eventually(field(object("v1alpha1", "InstallPlan", plan), "status", "phase")).WithTimeout(installation).Should(
			Equal("Complete"), "every manifest of the bundle is created")

		name, err := text(ctx, in.Client, subscription(), "status", "currentCSV")
		Expect(err).NotTo(HaveOccurred(), "the Subscription is read")
		csv = object("v1alpha1", "ClusterServiceVersion", name)
		place(ctx, in.Client)
		Eventually(field(csv, "status", "phase")).WithTimeout(installation).Should(Equal("Succeeded"), "the operator is installed")
	})

	It("has the rights that it asks for, and those that OLM gives to whoever has webhooks", func(ctx SpecContext) {
		const service = "tideline-controller-manager-service"
		Eventually(granted).WithArguments(ctx, in.Client).Should(ConsistOf(
			HavePrefix(csv.GetName()+"-"),                                // rights in all namespaces
			HavePrefix(csv.GetName()+"-"+packageName+"-"),                // rights in its own namespace, which OLM lifts
			HavePrefix(testutil.OperatorNamespace+"/"+csv.GetName()+"-"), // the same where they were asked for
			testutil.OperatorNamespace+"/"+csv.GetName(),                 // its OperatorCondition
			testutil.OperatorNamespace+"/"+service+"-cert",               // the Secret with its certificate
			service+"-system:auth-delegator",
			"kube-system/"+service+"-auth-reader",
		), "bindings to its ServiceAccount")
	})

	// Of every kind that an operator brings, OLM gives admins all verbs, and so also those that are no verbs of Kubernetes.
	It("lets admins of a namespace name the owners of jobs", func() {
		s := in.NewScenario(GinkgoT(), "admin")
		binding := &rbacv1.RoleBinding{
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "alice"}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		}
		binding.Namespace, binding.Name = s.Namespace, "alice"
		s.Create(binding)
		Eventually(func() (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "alice",
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: s.Namespace, Verb: "assign-owner", Group: v1alpha1.GroupVersion.Group, Resource: "elastictrainingjobs",
				},
			}}
			err := s.Client.Create(s.Context(), review)
			return review.Status.Allowed, err
		}).Should(BeTrue(), "docs/olm.md says so")
	})

	It("runs as its Deployment says, with the rights that OLM gave it", func(ctx SpecContext) {
		operator = newProcess(ctx, in.Client, GinkgoT().TempDir())
		Expect(in.Operate(ctx, operator.options)).To(Succeed(), "the operator reconciles")
		route(ctx, in.Client, csv, operator.webhooks)
		Expect(in.AwaitWebhooks(ctx)).To(Succeed(), "the API server trusts OLM's certificate for OLM's Service, and calls the operator")
		Eventually(operator.ready).WithContext(ctx).Should(Equal(http.StatusOK), "the operator is ready where its probe looks")
	})

	It("shows scenario 1: a gang is placed whole or not at all", func() {
		story.GangIsPlacedWhole(in.NewScenario(GinkgoT(), "s1", 3))
	})

	It("shows scenario 3: a running job makes room, and grows back", func() {
		story.MakesRoom(in.NewScenario(GinkgoT(), "s3", 8))
	})

	It("is found by the doctor", func(ctx SpecContext) {
		pools, err := testutil.Manifests(ctx, "pool/*.yaml")
		Expect(err).NotTo(HaveOccurred(), "config/pool is read")
		for _, pool := range pools {
			Expect(in.Client.Create(ctx, pool)).To(Succeed(), "what a bundle cannot hold is applied by hand")
		}
		Eventually(func() (string, error) {
			queue := gang.NewQueue()
			err := in.Client.Get(ctx, client.ObjectKeyFromObject(pools[0]), queue)
			return gang.QueueState(queue), err
		}).Should(Equal(gang.QueueOpen), "the pool opens")
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

		Expect(s.Read("a").Status.Phase).To(Equal(v1alpha1.PhaseRunning), "the job stays")
		Expect(s.UIDs("a")).To(Equal(before), "its workers keep their pods")
		testutil.Get(s, &schedulingv1.PriorityClass{}, "tideline-exploratory")
		Expect(s.Client.Create(s.Context(), s.Job("b").Obj())).To(Succeed(), "no webhook holds up a new job")
	})
})

// deployment is the operator's.
func deployment() *appsv1.Deployment {
	o := &appsv1.Deployment{}
	o.Namespace, o.Name = testutil.OperatorNamespace, testutil.OperatorServiceAccount
	return o
}

// place puts the pod of the operator's Deployment on a node, as kube-scheduler would, and waits until the node says that it runs.
func place(ctx context.Context, c client.Client) {
	GinkgoHelper()
	var pod *corev1.Pod
	Eventually(func() ([]corev1.Pod, error) {
		pods, err := podsOf(ctx, c)
		if len(pods) == 1 {
			pod = &pods[0]
		}
		return pods, err
	}).WithTimeout(installation).Should(HaveLen(1), "OLM's Deployment has its pod")
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "gpu-0"}}
	Expect(c.SubResource("binding").Create(ctx, pod, binding)).To(Succeed(), "the pod is placed")
	Eventually(func() (corev1.PodPhase, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase, err
	}).Should(Equal(corev1.PodRunning), "the simulated node says that it runs")
}

// podsOf lists the pods of the operator's Deployment.
func podsOf(ctx context.Context, c client.Client) ([]corev1.Pod, error) {
	o := deployment()
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	pods := &corev1.PodList{}
	err := c.List(ctx, pods, client.InNamespace(o.Namespace), client.MatchingLabels(o.Spec.Selector.MatchLabels))
	return pods.Items, err
}

// gone holds when an object does not exist.
func gone(ctx context.Context, c client.Client, o client.Object) (bool, error) {
	err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

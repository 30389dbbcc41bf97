package olm

import (
	"context"
	"net/http"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/testutil"
)

// OLM's own pace: it looks again at what is not ready after some seconds, and at all else less often.
const installation = 2 * time.Minute

// awaitPlan waits until OLM has resolved the Subscription to a ClusterServiceVersion, and applied the bundle that has it.
func awaitPlan(ctx context.Context, c client.Client, csv string) {
	GinkgoHelper()
	Eventually(text).WithArguments(ctx, c, subscription(), "status", "currentCSV").WithTimeout(installation).Should(Equal(csv),
		"the package of the catalog is resolved")
	plan, err := text(ctx, c, subscription(), "status", "installPlanRef", "name")
	Expect(err).NotTo(HaveOccurred(), "the Subscription is read")
	Eventually(text).WithArguments(ctx, c, object("v1alpha1", "InstallPlan", plan), "status", "phase").
		WithTimeout(installation).Should(Equal("Complete"), "every manifest of the bundle is applied")
}

// awaitInstalled waits until OLM says that a ClusterServiceVersion is installed, and returns it.
func awaitInstalled(ctx context.Context, c client.Client, name string) *unstructured.Unstructured {
	GinkgoHelper()
	csv := object("v1alpha1", "ClusterServiceVersion", name)
	Eventually(text).WithArguments(ctx, c, csv, "status", "phase").WithTimeout(installation).Should(Equal("Succeeded"),
		"the operator is installed")
	return csv
}

// operate runs the pod of the operator's Deployment as a process, until it is ready.
func operate(ctx context.Context, in *testutil.Installation, csv *unstructured.Unstructured) {
	GinkgoHelper()
	operator := launch(ctx, in, testutil.OperatorOptions{})
	operator.answers(ctx, in, csv)
}

// launch runs the pod of the operator's Deployment as a process. What o says of program and kinds counts.
func launch(ctx context.Context, in *testutil.Installation, o testutil.OperatorOptions) *process {
	GinkgoHelper()
	files, err := os.MkdirTemp(in.Logs(), "pod-")
	Expect(err).NotTo(HaveOccurred(), "there is room for what is mounted")
	operator := newProcess(ctx, in.Client, files)
	operator.options.Program, operator.options.Kinds = o.Program, o.Kinds
	Expect(in.Operate(ctx, operator.options)).To(Succeed(), "the operator reconciles")
	return operator
}

// answers leads the API server to the process, and waits until that answers.
func (p *process) answers(ctx context.Context, in *testutil.Installation, csv *unstructured.Unstructured) {
	GinkgoHelper()
	route(ctx, in.Client, csv, p.webhooks)
	Expect(in.AwaitWebhooks(ctx)).To(Succeed(), "the API server trusts OLM's certificate for OLM's Service, and calls the operator")
	Eventually(p.ready).WithContext(ctx).Should(Equal(http.StatusOK), "the operator is ready where its probe looks")
}

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

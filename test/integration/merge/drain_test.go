package merge

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("a drain", func() {
	It("waits for no surplus that is not there, and for a protected core until its run ends", func(ctx SpecContext) {
		p := newPool("drain", 3, 3)
		p.Due("a", 50*time.Hour)
		p.Create(p.merge("a").Pods(2, 8).Obj())
		Eventually(p.running("a")).Should(Equal(6), "the nodes are full, and two pods wait")
		some := p.protect("some", nil, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))})
		Eventually(p.FetchBudget("some")).Should(And(HaveField("Status.ExpectedPods", int32(2)),
			HaveField("Status.DisruptionsAllowed", int32(5))), "of the two that it needs one may be missing, and all surplus")

		first := p.nodeOf(0)
		Eventually(p.drain(first)).Should(BeEmpty(), "the drain ends")
		Eventually(p.FetchMerge("a")).Should(And(havePhase(v1beta1.MergeRunning), HaveField("Status.Run.Attempt", int32(2))),
			"the merge goes on elsewhere")
		Eventually(p.running("a")).Should(Equal(3), "with the surplus that fits there")

		p.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: first}}, `{"spec":{"unschedulable":false}}`)
		Eventually(p.running("a")).Should(Equal(6), "and grows back")
		p.Delete(some)
		p.protect("core", map[string]string{v1beta1.LabelPart: v1beta1.PartCore},
			policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromString("100%"))})
		Eventually(p.FetchBudget("core")).Should(And(HaveField("Status.ExpectedPods", int32(2)),
			HaveField("Status.CurrentHealthy", int32(2)), HaveField("Status.DisruptionsAllowed", BeZero())),
			"all of the core is protected")
		second := p.drain(p.nodeOf(0))
		Eventually(second).Should(ConsistOf(testutil.MergePod("a", 0), testutil.MergePod("a", 1)), "surplus leaves, and the core stays")
		Expect(p.ReadMerge("a").Status.Run.Attempt).To(Equal(int32(2)), "the attempt goes on")
		p.finish(ctx, p.ReadMerge("a"))
		Eventually(p.FetchMerge("a")).Should(haveMerged(), "the run ends")
		Eventually(second).Should(BeEmpty(), "and so does the drain")
	})
})

// protect creates a PodDisruptionBudget over the pods of merge a that have these labels too.
func (p *pool) protect(
	name string, labels map[string]string, spec policyv1.PodDisruptionBudgetSpec,
) *policyv1.PodDisruptionBudget {
	GinkgoHelper()
	spec.Selector = metav1.AddLabelToSelector(&metav1.LabelSelector{MatchLabels: labels}, v1beta1.LabelMerge, "a")
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}, Spec: spec}
	p.Create(b)
	return b
}

// nodeOf is the node of a pod of merge a.
func (p *pool) nodeOf(i int) string {
	GinkgoHelper()
	return testutil.Get(p.Scenario, &corev1.Pod{}, testutil.MergePod("a", i)).Spec.NodeName
}

// drain cordons a node. Each call of what it returns evicts the pods that are there, as kubectl drain does again and again, and
// lists those that stay.
func (p *pool) drain(node string) func() ([]string, error) {
	GinkgoHelper()
	p.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, `{"spec":{"unschedulable":true}}`)
	return func() ([]string, error) {
		pods := &corev1.PodList{}
		if err := p.Client.List(p.Context(), pods, client.InNamespace(p.Namespace)); err != nil {
			return nil, err
		}
		var left []string
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Spec.NodeName != node {
				continue
			}
			err := p.Client.SubResource("eviction").Create(p.Context(), pod, &policyv1.Eviction{})
			switch {
			case apierrors.IsNotFound(err):
				continue
			case err != nil && !apierrors.IsTooManyRequests(err):
				return nil, err
			}
			left = append(left, pod.Name)
		}
		return left, nil
	}
}

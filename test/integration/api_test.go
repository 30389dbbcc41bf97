package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/testutil"
)

// What Kubernetes' own tools and controllers do with Tideline's kinds.
var _ = Describe("The API", func() {
	It("lets kubectl scale and an autoscaler set a target, and neither overwrites the user's range", func() {
		s := newScenario("scale", 8)
		s.Submit(s.Job("a").Range(2, 8))
		Eventually(s.Fetch("a")).Should(testutil.Train(8), "A fills the room")
		kubectl(s, "scale", "etj/a", "--replicas=4")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(4), testutil.HaveRestarts(0),
			HaveField("Status.Summary", "4/4 (2..8, target 4)"), HaveField("Spec.MaxReplicas", int32(8))), "A has four")
		kubectl(s, "scale", "etj/a", "--replicas=1")
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A keeps its core")

		s.Create(&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "a"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
					APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ElasticTrainingJobKind, Name: "a",
				},
				MinReplicas: ptr.To[int32](6), MaxReplicas: 7,
			},
		})
		Eventually(s.Fetch("a")).Should(And(testutil.Train(6), HaveField("Spec.Replicas", int32(6)),
			HaveField("Spec.MinReplicas", int32(2)), HaveField("Spec.MaxReplicas", int32(8))), "the autoscaler asks for six")
	})

	It("lets nodes be drained that surplus is on, and protects the core by a PodDisruptionBudget", func() {
		s := newScenario("drain", 4)
		s.Submit(s.Job("a").Range(2, 8).Cooldown(time.Hour))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "the cluster is full")
		budget := func(name string, spec policyv1.PodDisruptionBudgetSpec) *policyv1.PodDisruptionBudget {
			spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelJob: "a"}}
			return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Spec: spec}
		}
		allowed := func(name string) func() (*policyv1.PodDisruptionBudget, error) {
			return func() (*policyv1.PodDisruptionBudget, error) {
				b := &policyv1.PodDisruptionBudget{}
				return b, s.Client.Get(s.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, b)
			}
		}
		s.Create(budget("some", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))}))
		Eventually(allowed("some")).Should(HaveField("Status.DisruptionsAllowed", BeNumerically(">=", 1)),
			"surplus that found no room keeps no drain waiting")
		s.Delete(budget("some", policyv1.PodDisruptionBudgetSpec{}))

		s.Patch(s.Read("a"), `{"spec":{"maxReplicas":4}}`)
		Eventually(s.Workers("a")).Should(Equal([]int{0, 1, 2, 3}), "no other surplus waits for the room")
		s.Create(budget("core", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2))}))
		Eventually(allowed("core")).Should(HaveField("Status.DisruptionsAllowed", int32(2)), "the surplus may leave")
		evict := func(i int) error {
			pod := s.Worker("a", i)
			return s.Client.SubResource("eviction").Create(s.Context(), pod, &policyv1.Eviction{})
		}
		Expect(evict(3)).To(Succeed(), "surplus is drained")
		Eventually(allowed("core")).Should(HaveField("Status.DisruptionsAllowed", int32(1)))
		Expect(evict(2)).To(Succeed(), "and the rest of it")
		Eventually(allowed("core")).Should(HaveField("Status.DisruptionsAllowed", int32(0)))
		Expect(apierrors.IsTooManyRequests(evict(1))).To(BeTrue(), "the core stays")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(2), testutil.HaveRestarts(0)), "A trains on with it")
	})

	It("lets a suspended job be changed, and keeps a running one as its pods are", func() {
		s := newScenario("edit", 2)
		s.Submit(s.Job("a").Range(2, 2))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		change := func(json string) error {
			return s.Client.Patch(s.Context(), s.Read("a"), client.RawPatch("application/merge-patch+json", []byte(json)))
		}
		selector := fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":%q}}}}}`, s.Node(0))
		Expect(change(selector)).To(MatchError(ContainSubstring(
			"spec.template: Invalid value: template cannot change while workers may run, because pods follow it only when they are " +
				"created: set spec.suspend to true, wait for phase Suspended, change it, and set spec.suspend to false")))
		Expect(change(`{"spec":{"framework":{"port":29500}}}`)).To(MatchError(ContainSubstring("framework cannot change")))
		Expect(change(`{"spec":{"master":{"nodeSelector":{"a":"b"}}}}`)).To(MatchError(ContainSubstring("master cannot change")))
		Expect(change(`{"spec":{"framework":{"nprocPerNode":1}}}`)).To(Succeed(), "what it has anyway")
		Expect(change(`{"spec":{"framework":{"nprocPerNode":null}}}`)).To(Succeed(), "and left out again")

		s.Patch(s.Read("a"), suspend)
		Eventually(s.Fetch("a")).Should(testutil.HavePhase(v1alpha1.PhaseSuspended))
		Eventually(s.Remains).Should(ConsistOf("ElasticTrainingJob a", "Service a-workers"), "nothing runs")
		Eventually(func() error {
			return change(`{"spec":{"suspend":false,"tier":"small-traffic","framework":{"nprocPerNode":2},` +
				strings.TrimPrefix(selector, `{"spec":{`))
		}).Should(Succeed(), "it is changed and resumed in one step, as queues that admit jobs do")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(2), HaveField("Status.Tier", "small-traffic")), "it goes on")
		pod := s.Worker("a", 0)
		Expect(pod.Spec.NodeSelector).To(HaveKeyWithValue("kubernetes.io/hostname", s.Node(0)))
		Expect(pod.Spec.PriorityClassName).To(Equal("tideline-small-traffic"))
		Expect(pod.Spec.Containers[0].Env).To(ContainElement(HaveField("Value", "2")), "two processes a worker")
	})

	DescribeTable("is stable for those who apply, edit and restore", func(ctx SpecContext, sample, field string, value any) {
		s := newScenario("stable", 1)
		o := sampleOf(sample, s.Namespace)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(s.Client.Delete(ctx, o))).To(Succeed()) })
		apply := func(manager string, from *unstructured.Unstructured) *unstructured.Unstructured {
			GinkgoHelper()
			to := from.DeepCopy()
			Expect(s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(to), client.FieldOwner(manager))).To(Succeed())
			return to
		}
		first := apply("git", o)
		Expect(apply("git", o).GetGeneration()).To(Equal(first.GetGeneration()), "what is applied twice changes nothing")

		other := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}}
		other.SetName(o.GetName())
		other.SetNamespace(o.GetNamespace())
		Expect(unstructured.SetNestedField(other.Object, value, strings.Split(field, ".")...)).To(Succeed())
		Expect(s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(other), client.FieldOwner("other"))).To(Succeed(),
			"another manager has a field of its own")
		changed := apply("git", o)
		have, _, err := unstructured.NestedFieldNoCopy(changed.Object, strings.Split(field, ".")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(have).To(Equal(value), "which the first leaves alone")

		live := changed.DeepCopy()
		Eventually(func() error {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
				return err
			}
			return s.Client.Update(ctx, live) // The operator may write a status in between.
		}).Should(Succeed(), "what is read can be written back")
		exported := o.DeepCopy()
		exported.Object["spec"] = live.Object["spec"]
		Expect(s.Client.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(s.Client.Get(ctx, client.ObjectKeyFromObject(o), live.DeepCopy()))
		}).Should(BeTrue())
		Expect(s.Client.Create(ctx, exported)).To(Succeed(), "what was exported is restored")
		Expect(exported.Object["spec"]).To(Equal(live.Object["spec"]), "with nothing lost")
	},
		Entry("a training", "job-a.yaml", "spec.replicas", int64(3)),
		Entry("a merge", "merge.yaml", "spec.threshold", int64(50)),
		Entry("a profile", "profile.yaml", "spec.queue.weight", int64(5)),
		Entry("a report", "report.yaml", "spec.top", int64(5)),
	)
})

// sampleOf reads a sample of config/samples, without a field that the table sets, suspended where it can be.
func sampleOf(name, namespace string) *unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", name))
	Expect(err).NotTo(HaveOccurred(), "the sample is there")
	o := &unstructured.Unstructured{}
	inJSON, err := yaml.YAMLToJSON(content)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(inJSON, &o.Object)).To(Succeed())
	o.SetName(namespace)
	spec, _ := o.Object["spec"].(map[string]any)
	switch o.GetKind() {
	case v1alpha1.ResourceQuotaProfileKind:
		delete(spec["queue"].(map[string]any), "weight") //nolint:forcetypeassert // a sample of ours
		spec["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{testutil.TeamLabel: namespace}}
		o.SetNamespace("")
	case v1alpha1.CostReportKind:
		spec["suspend"] = true
		o.SetNamespace("")
	default:
		spec["suspend"] = true
		o.SetNamespace(namespace)
	}
	return o
}

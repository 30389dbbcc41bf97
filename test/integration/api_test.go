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

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// With webhooks the same holds: webhook_test.go.
var _ = Describe("The API", func() {
	keepAPI(newScenario)
	offerVersions(newScenario, false)
})

// keepAPI has the specs of what Kubernetes' own tools and controllers do with Tideline's kinds, for a user with the role edit.
func keepAPI(scenario func(name string, gpus ...int64) *testutil.Scenario) {
	It("lets kubectl scale and an autoscaler set a target, and neither overwrites the user's range", func() {
		s := scenario("scale", 8)
		hers := as(s, engineer, "edit")
		Expect(hers.Create(s.Context(), s.Job("a").Range(2, 8).Obj())).To(Succeed(), "a user submits A")
		Eventually(s.Fetch("a")).Should(testutil.Train(8), "A fills the room")
		kubectl(s, "scale", "etj/a", "--replicas=4")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(4), testutil.HaveRestarts(0),
			HaveField("Status.Summary", "4/4 (2..8, target 4)"), HaveField("Spec.MaxReplicas", int32(8))), "A has four")
		kubectl(s, "scale", "etj/a", "--replicas=1")
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A keeps its core")

		Expect(hers.Create(s.Context(), &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "a"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
					APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ElasticTrainingJobKind, Name: "a",
				},
				MinReplicas: ptr.To[int32](6), MaxReplicas: 7,
			},
		})).To(Succeed(), "the user sets an autoscaler on it")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(6), HaveField("Spec.Replicas", int32(6)),
			HaveField("Spec.MinReplicas", int32(2)), HaveField("Spec.MaxReplicas", int32(8))), "the autoscaler asks for six")
	})

	It("lets kubectl scale set how many pods a merge has at least, within its maximum", func() {
		s := scenario("scale-merge")
		suspended := mergeOf(s).Pods(1, 4).With(func(spec *v1beta1.MergeJobSpec) { spec.Suspend = true }).Obj()
		Expect(as(s, engineer, "edit").Create(s.Context(), suspended)).To(Succeed(), "a user submits a merge")
		kubectl(s, "scale", "mergejob/a", "--replicas=3")
		Expect(s.ReadMerge("a").Spec).To(And(HaveField("MinReplicas", int32(3)), HaveField("MaxReplicas", int32(4))))
		Expect(kubectlRefused(s, "scale", "mergejob/a", "--replicas=5")).To(ContainSubstring(
			"minReplicas (5) must not exceed maxReplicas (4): lower minReplicas or raise maxReplicas"), "the ceiling is the user's")
	})

	It("lets nodes be drained that surplus is on, and protects the core by a PodDisruptionBudget", func() {
		s := scenario("drain", 4)
		hers := as(s, engineer, "edit")
		Expect(hers.Create(s.Context(), s.Job("a").Range(2, 8).Cooldown(time.Hour).Obj())).To(Succeed(), "a user submits A")
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "the cluster is full")
		budget := func(name string, spec policyv1.PodDisruptionBudgetSpec) *policyv1.PodDisruptionBudget {
			spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1.LabelJob: "a"}}
			return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Spec: spec}
		}
		some := budget("some", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))})
		Expect(hers.Create(s.Context(), some)).To(Succeed(), "the user lets one worker be missing")
		Eventually(s.FetchBudget("some")).Should(HaveField("Status.DisruptionsAllowed", BeNumerically(">=", 1)),
			"surplus that found no room keeps no drain waiting")
		Expect(hers.Delete(s.Context(), some)).To(Succeed())

		Expect(edit(s, hers, s.Read("a"), `{"spec":{"maxReplicas":4}}`)()).To(Succeed(), "the user lowers the maximum")
		Eventually(s.Workers("a")).Should(Equal([]int{0, 1, 2, 3}), "no other surplus waits for the room")
		core := budget("core", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2))})
		Expect(hers.Create(s.Context(), core)).To(Succeed(), "and protects the core")
		Eventually(s.FetchBudget("core")).Should(HaveField("Status.DisruptionsAllowed", int32(2)), "the surplus may leave")
		evict := func(i int) error {
			return hers.SubResource("eviction").Create(s.Context(), s.Worker("a", i), &policyv1.Eviction{})
		}
		Expect(evict(3)).To(Succeed(), "surplus is drained")
		Eventually(s.FetchBudget("core")).Should(HaveField("Status.DisruptionsAllowed", int32(1)))
		Expect(evict(2)).To(Succeed(), "and the rest of it")
		Eventually(s.FetchBudget("core")).Should(HaveField("Status.DisruptionsAllowed", int32(0)))
		Expect(apierrors.IsTooManyRequests(evict(1))).To(BeTrue(), "the core stays")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(2), testutil.HaveRestarts(0)), "A trains on with it")
	})

	It("lets a suspended job be changed, and keeps a running one as its pods are", func() {
		s := scenario("edit", 2)
		hers := as(s, engineer, "edit")
		Expect(hers.Create(s.Context(), s.Job("a").Range(2, 2).Obj())).To(Succeed(), "a user submits A")
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		change := func(json string) error { return edit(s, hers, s.Read("a"), json)() }
		selector := fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":%q}}}}}`, s.Node(0))
		Expect(change(selector)).To(MatchError(ContainSubstring(
			"spec.template: Invalid value: template cannot change while workers may run, because pods follow it only when they are " +
				"created: set spec.suspend to true, wait for phase Suspended, change it, and set spec.suspend to false")))
		Expect(change(`{"spec":{"framework":{"port":29500}}}`)).To(MatchError(ContainSubstring("framework cannot change")))
		Expect(change(`{"spec":{"master":{"nodeSelector":{"a":"b"}}}}`)).To(MatchError(ContainSubstring("master cannot change")))
		Expect(change(`{"spec":{"framework":{"nprocPerNode":1}}}`)).To(Succeed(), "what it has anyway")
		Expect(change(`{"spec":{"framework":{"nprocPerNode":null}}}`)).To(Succeed(), "and left out again")

		Expect(change(suspend)).To(Succeed(), "the user suspends it")
		Eventually(s.Fetch("a")).Should(testutil.HavePhase(v1beta1.PhaseSuspended))
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

	DescribeTable("is stable for those who apply, edit, replace and restore", func(sample, role, field string) {
		s := scenario("stable")
		m := managed{s: s, c: as(s, engineer, "edit"), at: strings.Split(field, "."), o: sampleOf(sample, s.Namespace)}
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(s.Client.Delete(ctx, m.o))).To(Succeed()) })
		if role != "" {
			bindAll(s, engineer, role)
		}
		var first *unstructured.Unstructured
		Eventually(func() (err error) {
			first, err = m.apply("git", m.o)
			return err
		}).Should(Succeed(), "a user applies it, when the API server has seen the binding")
		Expect(m.apply("git", m.o)).To(HaveField("GetGeneration()", first.GetGeneration()), "applied twice it is the same")
		Eventually(m.seen).Should(BeTrue(), "the operator reads it")
		m.expectNoDrift()

		_, err := m.apply("other", m.with(3))
		Expect(err).NotTo(HaveOccurred(), "another manager has a field of its own")
		Expect(m.apply("git", m.o)).To(HaveField("Object", m.having(3)), "which the first leaves alone")
		m.expectNoDrift()

		Expect(m.edit(5)).To(Succeed(), "somebody edits the field")
		m.expectNoDrift()
		_, err = m.apply("other", m.with(3))
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "the other manager is told: %v", err)
		Expect(m.read().Object).To(m.having(5), "and nothing is overwritten")

		Eventually(func() error { return m.c.Update(s.Context(), m.read()) }).Should(Succeed(), "what is read can be written back")
		Expect(m.read().Object).To(m.having(5), "as it was")
		Eventually(m.replace).Should(Succeed(), "it is replaced by the manifest")
		Expect(m.read().Object["spec"]).To(Equal(first.Object["spec"]), "it is as it was first applied, with whose it is")

		Expect(m.edit(5)).To(Succeed())
		live := m.read()
		Expect(m.c.Delete(s.Context(), live, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(s.Client.Get(s.Context(), client.ObjectKeyFromObject(live), live.DeepCopy()))
		}).Should(BeTrue(), "it is gone")
		restored := m.o.DeepCopy()
		restored.Object["spec"] = live.Object["spec"]
		Expect(m.c.Create(s.Context(), restored)).To(Succeed(), "what was exported is restored")
		Expect(restored.Object["spec"]).To(Equal(live.Object["spec"]), "with nothing lost")
	},
		Entry("a training", "job-a.yaml", "", "spec.replicas"),
		Entry("a merge", "merge.yaml", "", "spec.threshold"),
		Entry("a profile", "profile.yaml", "tideline-profiles", "spec.queue.weight"),
		Entry("a report", "report.yaml", "tideline-reports", "spec.top"),
	)
}

// managed is an object of which a user keeps the manifest elsewhere, without the field that others set.
type managed struct {
	s  *testutil.Scenario
	c  client.Client
	o  *unstructured.Unstructured
	at []string
}

// apply applies by server-side apply, and returns what the API server has then.
func (m *managed) apply(
	manager string, o *unstructured.Unstructured, more ...client.ApplyOption,
) (*unstructured.Unstructured, error) {
	o = o.DeepCopy()
	more = append(more, client.FieldOwner(manager))
	return o, m.c.Apply(m.s.Context(), client.ApplyConfigurationFromUnstructured(o), more...)
}

// with is the object with nothing but the field.
func (m *managed) with(value int64) *unstructured.Unstructured {
	GinkgoHelper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": m.o.GetAPIVersion(), "kind": m.o.GetKind()}}
	o.SetName(m.o.GetName())
	o.SetNamespace(m.o.GetNamespace())
	Expect(unstructured.SetNestedField(o.Object, value, m.at...)).To(Succeed())
	return o
}

// having matches an object in which the field has this value.
func (m *managed) having(value int64) OmegaMatcher {
	return WithTransform(func(o map[string]any) (int64, error) {
		have, _, err := unstructured.NestedInt64(o, m.at...)
		return have, err
	}, Equal(value))
}

// edit changes the field as kubectl edit does.
func (m *managed) edit(value int64) error {
	patch, err := json.Marshal(map[string]any{"spec": m.with(value).Object["spec"]})
	if err != nil {
		return err
	}
	return edit(m.s, m.c, m.o.DeepCopy(), string(patch))()
}

// replace puts the manifest in the place of the object, as kubectl replace does.
func (m *managed) replace() error {
	o := m.o.DeepCopy()
	o.SetResourceVersion(m.read().GetResourceVersion())
	return m.c.Update(m.s.Context(), o)
}

// read reads the object.
func (m *managed) read() *unstructured.Unstructured {
	GinkgoHelper()
	live := m.o.DeepCopy()
	Expect(m.s.Client.Get(m.s.Context(), client.ObjectKeyFromObject(live), live)).To(Succeed(), "the object is there")
	return live
}

// seen tells whether the operator has written a status for what the object says now.
func (m *managed) seen() (bool, error) {
	live := m.read()
	generation, _, err := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	return generation == live.GetGeneration(), err
}

// expectNoDrift compares the object with what another apply of the manifest would make of it, as tools for GitOps do.
func (m *managed) expectNoDrift() {
	GinkgoHelper()
	would, err := m.apply("git", m.o, client.DryRunAll)
	Expect(err).NotTo(HaveOccurred(), "the manifest can be compared")
	live := m.read()
	Expect(would.Object["spec"]).To(Equal(live.Object["spec"]), "no drift")
	Expect(would.GetAnnotations()).To(Equal(live.GetAnnotations()), "no drift")
	Expect(would.GetLabels()).To(Equal(live.GetLabels()), "no drift")
	Expect(would.GetGeneration()).To(Equal(live.GetGeneration()), "no drift")
}

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
	case v1beta1.ResourceQuotaProfileKind:
		delete(spec["queue"].(map[string]any), "weight") //nolint:forcetypeassert // a sample of ours
		spec["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{testutil.TeamLabel: namespace}}
		o.SetNamespace("")
	case v1beta1.CostReportKind:
		spec["suspend"] = true
		o.SetNamespace("")
	default:
		spec["suspend"] = true
		o.SetNamespace(namespace)
	}
	return o
}

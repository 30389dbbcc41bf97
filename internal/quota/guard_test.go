package quota

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// guarded is a profile that keeps its accelerators for Tideline's jobs, in a simulator whose API server judges pods.
func guarded(t *testing.T) (*simulator, *v1beta1.ResourceQuotaProfile) {
	t.Helper()
	w := newSimulator(t)
	p := w.profile("ads", 1)
	p.UID = "1"
	p.Spec.Caps = &v1beta1.ProfileCaps{OtherWorkloads: v1beta1.OtherWorkloadsRefuse}
	w.o.Namespace = "tideline-system"
	w.o.Guarding = Guarding{Operator: "operator", ConfigMaps: map[types.UID]*corev1.ConfigMap{}}
	return w, p
}

// guard carries out what is decided about the guard of the first profile, and returns that and the condition.
func (w *simulator) guard() (GuardDecision, *metav1.Condition) {
	d := w.plan().Profiles[0]
	for _, c := range []*corev1.ConfigMap{d.Guard.Create, d.Guard.Apply} {
		if c != nil {
			w.o.Guarding.ConfigMaps[d.Profile.UID] = c
		}
	}
	if d.Guard.Delete != nil {
		delete(w.o.Guarding.ConfigMaps, d.Profile.UID)
	}
	return d.Guard, meta.FindStatusCondition(d.Status.Conditions, v1beta1.ConditionOtherWorkloadsRefused)
}

func TestProfileThatRefusesOtherWorkloadsHasAGuard(t *testing.T) {
	g := NewWithT(t)
	w, p := guarded(t)
	p.Spec.Caps.PerUser = []v1beta1.ResourceCap{{Resource: "example.com/npu", Max: resource.MustParse("1")}, {Resource: "cpu"}}
	d, said := w.guard()
	g.Expect(said).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1beta1.ReasonGuardMissing),
		HaveField("Message", HavePrefix("ConfigMap tideline-system/tideline-guard-ads is being written.")))))
	g.Expect(d.Create.Name).To(Equal("tideline-guard-ads"))
	g.Expect(d.Create.Namespace).To(Equal("tideline-system"))
	g.Expect(metav1.IsControlledBy(d.Create, p)).To(BeTrue(), "it goes with the profile")
	g.Expect(d.Create.Labels).To(HaveKeyWithValue("tideline.io/guard", "other-workloads"))
	g.Expect(d.Create.Data).To(And(HaveLen(5), HaveKeyWithValue("profile", "ads"), HaveKeyWithValue("operator", "operator"),
		HaveKeyWithValue("namespaces", "In team ads"), HaveKeyWithValue("except", "")))
	g.Expect(" "+d.Create.Data["resources"]+" ").To(And(ContainSubstring(" nvidia.com/gpu "), ContainSubstring(" amd.com/gpu "),
		ContainSubstring(" volcano.sh/vgpu-number "), ContainSubstring(" nvidia.com/gpu.shared "),
		ContainSubstring(" example.com/npu "), Not(ContainSubstring("cpu"))), "all that are counted, and what is capped")

	d, said = w.guard()
	g.Expect(d).To(BeZero(), "it is there")
	g.Expect(said).To(HaveValue(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1beta1.ReasonGuardInForce),
		HaveField("Message", ContainSubstring("example.com/npu")))))
}

func TestGuardFollowsItsProfile(t *testing.T) {
	g := NewWithT(t)
	w, p := guarded(t)
	w.guard()
	kept := w.o.Guarding.ConfigMaps["1"]
	p.Spec.Queue.Capability = corev1.ResourceList{"example.com/fpga": resource.MustParse("4"), "memory": resource.MustParse("1Ti")}
	d, said := w.guard()
	g.Expect(d.Have).To(BeIdenticalTo(kept))
	g.Expect(d.Apply.Data["resources"]).To(And(ContainSubstring("example.com/fpga"), Not(ContainSubstring("memory"))))
	g.Expect(said.Status).To(Equal(metav1.ConditionTrue))

	p.Spec.NamespaceSelector = metav1.LabelSelector{
		MatchLabels: map[string]string{"team": "ads", "stage": ""},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []string{"ads", "bids"}},
			{Key: "stage", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"test"}},
			{Key: "gpu", Operator: metav1.LabelSelectorOpExists},
			{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
		},
	}
	d, _ = w.guard()
	g.Expect(d.Apply.Data["namespaces"]).To(Equal(
		"In stage ;In team ads;In team ads,bids;NotIn stage test;Exists gpu;DoesNotExist old"))

	d, _ = w.guard()
	g.Expect(d).To(BeZero())
	w.o.Guarding.ConfigMaps["1"].Data["resources"] = "" // somebody edits it
	d, _ = w.guard()
	g.Expect(d.Apply.Data["resources"]).To(ContainSubstring("nvidia.com/gpu"))
	delete(w.o.Guarding.ConfigMaps, "1") // or deletes it
	d, said = w.guard()
	g.Expect(d.Create).NotTo(BeNil())
	g.Expect(said.Status).To(Equal(metav1.ConditionFalse))

	p.Spec.Caps.OtherWorkloads = v1beta1.OtherWorkloadsCount
	d, said = w.guard()
	g.Expect(d.Delete).NotTo(BeNil())
	g.Expect(said).To(BeNil())
	d, _ = w.guard()
	g.Expect(d).To(BeZero(), "a profile that refuses none has none")
}

// What the selector chooses and an older profile has is that profile's, which may let other workloads in.
func TestGuardExceptsWhatOlderProfilesHave(t *testing.T) {
	g := NewWithT(t)
	w, p := guarded(t)
	w.profile("search", 1)
	older := w.o.Profiles[1].Object
	older.UID, older.CreationTimestamp = "2", metav1.NewTime(p.CreationTimestamp.Add(-1))
	older.Spec.NamespaceSelector = metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	for _, name := range []string{"prod-b", "prod-a"} {
		w.o.Namespaces = append(w.o.Namespaces, Namespace{Name: name, Labels: map[string]string{"team": "ads", "stage": "prod"}})
	}
	d, _ := w.guard()
	g.Expect(d.Create.Data["except"]).To(Equal("prod-a prod-b"))
}

func TestGuardThatIsNotInForceSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*simulator)
		says   string
	}{
		"no policy": {
			func(w *simulator) { w.o.Guarding.NotInForce = "There is no policy." },
			"There is no policy. Until then other pods get accelerators, and count.",
		},
		"no name": {func(w *simulator) { w.o.Guarding.Operator = "" }, "The operator does not know yet"},
		"refused": {
			func(w *simulator) { w.o.Profiles[0].GuardRefused = "too large"; delete(w.o.Guarding.ConfigMaps, "1") },
			"ConfigMap tideline-system/tideline-guard-ads cannot be written: too large.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w, p := guarded(t)
			w.guard()
			c.change(w)
			_, said := w.guard()
			g.Expect(said).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", HavePrefix(c.says)))))
			if w.o.Guarding.Operator == "" {
				g.Expect(w.o.Guarding.ConfigMaps).To(HaveKey(p.UID), "what it has stays")
				g.Expect(w.plan().Again).To(Equal(RefusedInterval), "it asks again")
			}
		})
	}
	g := NewWithT(t)
	w, _ := guarded(t)
	w.guard()
	w.o.Profiles[0].Invalid = "no"
	d, _ := w.guard()
	g.Expect(d).To(BeZero(), "an invalid profile keeps its guard")
}

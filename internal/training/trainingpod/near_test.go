package trainingpod

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// nearJob is a job whose core is in a rack, which is in a spine.
func nearJob(t *v1beta1.NetworkTopology) Blueprint {
	b := blueprint()
	b.Job.Spec.NetworkTopology = t
	b.Near = []Near{{Tier: 1, Hosts: []string{"a0", "a1"}}, {Tier: 2, Hosts: []string{"a0", "a1", "b0"}}}
	return b
}

func on(hosts ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "kubernetes.io/hostname", Operator: "In", Values: hosts},
	}}
}

func TestSurplusIsPlacedWhereItsStepIs(t *testing.T) {
	g := NewWithT(t)
	b := nearJob(&v1beta1.NetworkTopology{Mode: v1beta1.TopologyHard, HighestTierAllowed: ptr.To[int32](2)})
	b.Job.Spec.Template.Annotations = map[string]string{v1beta1.AnnotationStepDomain: "of the template"}
	b.StepDomains = map[int32]StepDomain{b.Attempt.MinReplicas: {Name: "rack", Hosts: []string{"a0", "a1"}}}
	in := b.NewPod(b.Attempt.MinReplicas)
	g.Expect(in.Annotations).To(HaveKeyWithValue(v1beta1.AnnotationStepDomain, "rack"))
	required := in.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	g.Expect(required).To(HaveLen(1))
	both := slices.Concat(on("a0", "a1", "b0").MatchExpressions, on("a0", "a1").MatchExpressions)
	g.Expect(required[0].MatchExpressions).To(ConsistOf(both))
	g.Expect(b.NewPod(0).Annotations).NotTo(HaveKey(v1beta1.AnnotationStepDomain))
	g.Expect(b.Job.Spec.Template.Annotations).To(HaveLen(1), "the template stays as it is")
}

func TestSurplusStaysNearItsCore(t *testing.T) {
	both := []corev1.PreferredSchedulingTerm{
		{Weight: 50, Preference: on("a0", "a1")}, {Weight: 50, Preference: on("a0", "a1", "b0")},
	}
	rack := []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: on("a0", "a1")}}
	for name, c := range map[string]struct {
		topology  *v1beta1.NetworkTopology
		preferred []corev1.PreferredSchedulingTerm
		required  []corev1.NodeSelectorTerm
		core      *gang.Closeness
	}{
		"anywhere": {},
		"Soft":     {&v1beta1.NetworkTopology{Mode: v1beta1.TopologySoft}, both, nil, &gang.Closeness{}},
		"Hard, in the rack": {
			&v1beta1.NetworkTopology{Mode: v1beta1.TopologyHard, HighestTierAllowed: ptr.To[int32](1)}, rack,
			[]corev1.NodeSelectorTerm{on("a0", "a1")}, &gang.Closeness{Hard: true, Highest: 1},
		},
		"Hard, in the spine": {
			&v1beta1.NetworkTopology{Mode: v1beta1.TopologyHard, HighestTierAllowed: ptr.To[int32](2)}, both,
			[]corev1.NodeSelectorTerm{on("a0", "a1", "b0")}, &gang.Closeness{Hard: true, Highest: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := nearJob(c.topology)
			g.Expect(b.NewPod(0).Spec.Affinity).To(BeNil(), "Volcano places the core by its PodGroup")
			g.Expect(b.CoreGroup().Closeness).To(Equal(c.core))
			g.Expect(b.SurplusGroup().Closeness).To(BeNil(), "Volcano would look at how full HyperNodes are, and not at the core")
			made := b.NewPod(b.Attempt.MinReplicas).Spec.Affinity
			if c.topology == nil {
				g.Expect(made).To(BeNil())
				return
			}
			g.Expect(made.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution).To(Equal(c.preferred))
			if required := made.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; c.required == nil {
				g.Expect(required).To(BeNil())
			} else {
				g.Expect(required.NodeSelectorTerms).To(Equal(c.required))
			}
		})
	}
}

func TestLargeHyperNodesAreNotNamed(t *testing.T) {
	g := NewWithT(t)
	b := nearJob(&v1beta1.NetworkTopology{Mode: v1beta1.TopologyHard, HighestTierAllowed: ptr.To[int32](2)})
	for i := range MostHosts {
		b.Near[1].Hosts = append(b.Near[1].Hosts, fmt.Sprintf("c%d", i))
	}
	must := b.NewPod(b.Attempt.MinReplicas).Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	g.Expect(must.NodeSelectorTerms).To(Equal([]corev1.NodeSelectorTerm{on("a0", "a1")}), "a narrower one is as good")
}

package arbiter

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestCapsOfModelsHoldForNodesThatAreNamed(t *testing.T) {
	const product = "nvidia.com/gpu.product"
	for name, ask := range map[string]func(*corev1.PodSpec){
		"nodeSelector": func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{product: "A100"} },
		"affinity": func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: product, Operator: corev1.NodeSelectorOpIn, Values: []string{"A100"}},
					}},
				}},
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			node, _ := s.objects[0].(*corev1.Node)
			node.Labels = map[string]string{product: "A100"}
			s.capped(1, "A100")
			ask(&s.asking("walker").Spec.Template.Spec) // two workers with a GPU each
			g.Expect(s.turn("walker").Admitted).To(BeFalse())
		})
	}
}

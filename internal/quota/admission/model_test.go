package admission

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

const product = "nvidia.com/gpu.product"

// in demands a value of the label of models.
func in(values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: product, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// demanding is affinity to nodes for which one of these terms holds.
func demanding(terms ...[]corev1.NodeSelectorRequirement) *corev1.Affinity {
	required := &corev1.NodeSelector{}
	for _, t := range terms {
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: t})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
}

func TestModelThatAJobNames(t *testing.T) {
	all := func(r ...corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement { return r }
	zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}
	notH100 := corev1.NodeSelectorRequirement{Key: product, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"H100"}}
	for name, c := range map[string]struct {
		models   []string
		selector map[string]string
		affinity *corev1.Affinity
		want     string
	}{
		"nothing":                     {},
		"a model":                     {models: []string{"A100"}, want: "A100"},
		"two":                         {models: []string{"A100", "H100"}},
		"a node of it":                {selector: map[string]string{product: "A100"}, want: "A100"},
		"other nodes":                 {selector: map[string]string{"zone": "a"}},
		"two and a node of one":       {models: []string{"A100", "H100"}, selector: map[string]string{product: "A100"}, want: "A100"},
		"affinity":                    {affinity: demanding(all(in("A100"))), want: "A100"},
		"affinity and a zone":         {affinity: demanding(all(zone, in("A100"))), want: "A100"},
		"affinity twice":              {affinity: demanding(all(in("A100", "H100"), in("A100"))), want: "A100"},
		"either of two terms":         {affinity: demanding(all(in("A100")), all(in("A100"), zone)), want: "A100"},
		"either, and one is any":      {affinity: demanding(all(in("A100")), all(zone))},
		"a term that matches nothing": {affinity: demanding(all(in("A100")), all()), want: "A100"},
		"affinity to two":             {affinity: demanding(all(in("A100", "H100")))},
		"not another":                 {affinity: demanding(all(notH100))},
		"two, and affinity to one":    {models: []string{"A100", "H100"}, affinity: demanding(all(in("A100"))), want: "A100"},
	} {
		t.Run(name, func(t *testing.T) {
			var a *v1beta1.Accelerator
			if c.models != nil {
				a = &v1beta1.Accelerator{Models: c.models}
			}
			spec := &corev1.PodSpec{NodeSelector: c.selector, Affinity: c.affinity}
			NewWithT(t).Expect(ModelOf(a, spec, config.DefaultAccelerators())).To(Equal(c.want))
		})
	}
}

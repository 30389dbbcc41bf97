package admission

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// ModelOf is the model of accelerator that a gang asks for, by its accelerator (nil for none) or by what the template of its pods
// demands of the labels of nodes. It is empty for a gang that names none or several: its pods count by the nodes they are on.
func ModelOf(a *v1beta1.Accelerator, spec *corev1.PodSpec, accelerators config.Accelerators) string {
	var allowed []sets.Set[string] // one for each demand: the models that meet it
	if a != nil && len(a.Models) > 0 {
		allowed = append(allowed, sets.New(a.Models...))
	}
	for _, label := range slices.Compact(slices.Sorted(maps.Values(accelerators))) {
		if value, named := spec.NodeSelector[label]; named {
			allowed = append(allowed, sets.New(value))
		}
		if values := demandedByAffinity(spec.Affinity, label); values != nil {
			allowed = append(allowed, values)
		}
	}
	if len(allowed) == 0 {
		return ""
	}
	left := allowed[0]
	for _, models := range allowed[1:] {
		left = left.Intersection(models)
	}
	if len(left) != 1 {
		return ""
	}
	return left.UnsortedList()[0]
}

// demandedByAffinity are the values of a label that nodes may have by required affinity; nil for any.
func demandedByAffinity(a *corev1.Affinity, label string) sets.Set[string] {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	all := sets.New[string]()
	// One of the terms must hold.
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var of sets.Set[string]
		for _, e := range term.MatchExpressions {
			if e.Key != label || e.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			if values := sets.New(e.Values...); of == nil {
				of = values
			} else {
				of = of.Intersection(values)
			}
		}
		if of == nil && len(term.MatchExpressions)+len(term.MatchFields) > 0 { // an empty term matches no node
			return nil
		}
		all = all.Union(of)
	}
	return all
}

package trainingpod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// require adds a requirement of a node's labels to every alternative of the pod's required node affinity.
func require(spec *corev1.PodSpec, r corev1.NodeSelectorRequirement) {
	restrict(spec, func(term *corev1.NodeSelectorTerm) { term.MatchExpressions = append(term.MatchExpressions, r) })
}

// avoid keeps the pod off a node.
func avoid(spec *corev1.PodSpec, node string) {
	restrict(spec, func(term *corev1.NodeSelectorTerm) {
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{node},
		})
	})
}

// restrict narrows every alternative of the pod's required node affinity. An alternative that says nothing matches no node, and
// stays so.
func restrict(spec *corev1.PodSpec, narrow func(*corev1.NodeSelectorTerm)) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
		narrow(&(*required).NodeSelectorTerms[0])
		return
	}
	terms := (*required).NodeSelectorTerms
	for i := range terms {
		if len(terms[i].MatchExpressions)+len(terms[i].MatchFields) > 0 {
			narrow(&terms[i])
		}
	}
}

package trainingpod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requireLabel adds a requirement on node labels to every alternative of the pod's required node affinity.
func requireLabel(spec *corev1.PodSpec, r corev1.NodeSelectorRequirement) {
	restrictNodes(spec, func(term *corev1.NodeSelectorTerm) { term.MatchExpressions = append(term.MatchExpressions, r) })
}

// avoidNode keeps the pod off a node. A preference would not do: Volcano's binpack would send it back to the node that has room
// because it takes no pods.
func avoidNode(spec *corev1.PodSpec, node string) {
	restrictNodes(spec, func(term *corev1.NodeSelectorTerm) {
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{node},
		})
	})
}

// MostShunned is how many nodes a pod prefers not to be on at most.
const MostShunned = 16

// preferOthers has the pod prefer other nodes. It is no requirement: a job that fits on none of the others goes there.
func preferOthers(spec *corev1.PodSpec, nodes []string) {
	if len(nodes) == 0 {
		return
	}
	var others []corev1.NodeSelectorRequirement
	for _, name := range nodes[:min(len(nodes), MostShunned)] {
		others = append(others, corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{name},
		})
	}
	preferred := &nodeAffinity(spec).PreferredDuringSchedulingIgnoredDuringExecution
	*preferred = append(*preferred, corev1.PreferredSchedulingTerm{
		Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: others},
	})
}

// restrictNodes narrows every alternative of the pod's required node affinity.
func restrictNodes(spec *corev1.PodSpec, narrow func(*corev1.NodeSelectorTerm)) {
	required := &nodeAffinity(spec).RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
		narrow(&(*required).NodeSelectorTerms[0])
		return
	}
	terms := (*required).NodeSelectorTerms
	for i := range terms {
		// An empty alternative matches no node. With a requirement added it would match some.
		if len(terms[i].MatchExpressions)+len(terms[i].MatchFields) > 0 {
			narrow(&terms[i])
		}
	}
}

// nodeAffinity is the pod's node affinity, made where it has none.
func nodeAffinity(spec *corev1.PodSpec) *corev1.NodeAffinity {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return spec.Affinity.NodeAffinity
}

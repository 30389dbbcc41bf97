package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AvoidedBy are the nodes that a pod's required node affinity excludes by name.
func AvoidedBy(spec *corev1.PodSpec) []string {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return nil
	}
	var nodes []string
	for i := range required.NodeSelectorTerms {
		for _, r := range required.NodeSelectorTerms[i].MatchFields {
			if r.Key == metav1.ObjectNameField && r.Operator == corev1.NodeSelectorOpNotIn {
				nodes = append(nodes, r.Values...)
			}
		}
	}
	return nodes
}

// SilentNodes lists the nodes that may not answer, each once: those of terminating workers, and of running workers that are not
// ready.
func SilentNodes(workers []Worker) []string {
	var nodes []string
	listed := map[string]bool{}
	for i := range workers {
		w := &workers[i]
		if w.Node != "" && (w.Terminating || w.Phase == corev1.PodRunning && !w.Ready) && !listed[w.Node] {
			listed[w.Node] = true
			nodes = append(nodes, w.Node)
		}
	}
	return nodes
}

// UnreachableSince is since when a node has not answered; false for a node that answers, even if it says that it is not ready.
func UnreachableSince(node *corev1.Node) (time.Time, bool) {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

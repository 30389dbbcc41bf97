package arbiter

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

// volumesIn returns a function that says where pods may run that use a PersistentVolumeClaim of the namespace. That is known
// only for a bound claim, and only if many nodes may use its volume at a time: otherwise one pod ties all others to its node.
func (m *mirror) volumesIn(namespace string) func(name string) capacity.Volume {
	return func(name string) capacity.Volume {
		claim := m.volumeClaims[types.NamespacedName{Namespace: namespace, Name: name}]
		switch {
		case claim == nil:
			return capacity.Volume{Unmodelled: capacity.NoVolumeClaim}
		case claim.DeletionTimestamp != nil:
			return capacity.Volume{Unmodelled: capacity.LeavingVolumeClaim}
		case claim.Status.Phase != corev1.ClaimBound:
			return capacity.Volume{Unmodelled: capacity.OpenVolumeClaim}
		case !slices.ContainsFunc(claim.Spec.AccessModes, manyNodes):
			return capacity.Volume{Unmodelled: capacity.SingleNodeVolume}
		}
		volume := m.volumes[claim.Spec.VolumeName]
		if volume == nil {
			return capacity.Volume{Unmodelled: capacity.LostVolume}
		}
		return capacity.Volume{Nodes: nodesOf(volume)}
	}
}

// nodesOf are the nodes that can use a volume; nil for all.
func nodesOf(volume *corev1.PersistentVolume) *corev1.NodeSelector {
	if volume.Spec.NodeAffinity != nil {
		return volume.Spec.NodeAffinity.Required
	}
	var term corev1.NodeSelectorTerm
	for _, key := range kube.VolumeTopology {
		// Kubernetes joins the zones of a volume that several have by "__".
		if value, ok := volume.Labels[key]; ok {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: strings.Split(value, "__"),
			})
		}
	}
	if len(term.MatchExpressions) == 0 {
		return nil
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
}

func manyNodes(mode corev1.PersistentVolumeAccessMode) bool {
	return mode == corev1.ReadWriteMany || mode == corev1.ReadOnlyMany
}

package arbiter

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity"
)

// claimed tells of the PersistentVolumeClaims of a namespace what they mean for placement. Only of one that is bound is it known
// where its volume is, and only volumes that many nodes may use at a time hold nobody to the node of another.
func (c *collector) claimed(namespace string) func(name string) capacity.Volume {
	return func(name string) capacity.Volume {
		claim := c.volumeClaims[types.NamespacedName{Namespace: namespace, Name: name}]
		switch {
		case claim == nil:
			return capacity.Volume{Unmodelled: "a PersistentVolumeClaim that does not exist"}
		case claim.Status.Phase != corev1.ClaimBound:
			return capacity.Volume{Unmodelled: "a PersistentVolumeClaim that is not bound"}
		case !slices.ContainsFunc(claim.Spec.AccessModes, manyNodes):
			return capacity.Volume{Unmodelled: "a PersistentVolumeClaim that one node at a time may use"}
		}
		volume := c.volumes[claim.Spec.VolumeName]
		switch {
		case volume == nil:
			return capacity.Volume{Unmodelled: "a PersistentVolumeClaim whose volume is lost"}
		case volume.Spec.NodeAffinity == nil:
			return capacity.Volume{}
		}
		return capacity.Volume{Nodes: volume.Spec.NodeAffinity.Required}
	}
}

func manyNodes(mode corev1.PersistentVolumeAccessMode) bool {
	return mode == corev1.ReadWriteMany || mode == corev1.ReadOnlyMany
}

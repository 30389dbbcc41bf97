package capacity

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/capacity/devices"
	"github.com/tideline-io/tideline/internal/platform/weight"
)

// What the model does not cover, as people read it: "because it asks for ...". docs/metrics.md lists the same, and metric
// tideline_unjudged_gangs counts the gangs that wait with each.
const (
	// ManyShapes is for a gang with more than MostShapes different pods.
	ManyShapes = "pods of too many shapes"
	// ManyRules is for pods whose places depend on each other by more than one rule about domains larger than a node.
	ManyRules = "several rules about zones or racks"
	// CrowdedRules is for a gang whose rules about other pods are not among those that LimitRules leaves.
	CrowdedRules = "rules about other pods, and older gangs wait with as many other rules as are judged at once"
	// RulesOfShapes is for a gang of several shapes of which one has a rule about domains larger than a node.
	RulesOfShapes = "a rule about zones or racks for pods of several shapes"
	// OneDomain is for a gang that must be in one domain together, of which only some have room for all of it.
	OneDomain = "one zone or rack for all its workers, and the scheduler may begin in one that is too small"
	// InTurn is for a gang of several shapes that fits only if each is placed on the right nodes.
	InTurn = "pods of several shapes, and the scheduler may give one the place that another needs"
	// OwnLabels is for a selector that names a label that differs between the pods of a gang, such as their index.
	OwnLabels = "rules about labels that differ between its own pods"
	// SelectedNamespaces is for a rule about pods of namespaces that are selected by labels.
	SelectedNamespaces = "rules about namespaces by their labels"
	// LabelKeys is for matchLabelKeys and mismatchLabelKeys.
	LabelKeys = "rules with matchLabelKeys"
	// SpreadPolicies is for a topology spread constraint that does not count nodes in the usual way.
	SpreadPolicies = "topology spread with a policy for nodes"
	// DeviceClaims is for devices that are claimed from DRA.
	DeviceClaims = "resource claims"
	// TooMuch is for a pod with so many rules or volumes that caches keep none of them.
	TooMuch = "more rules and volumes than are read"
	// EphemeralVolumes is for volumes that are made for a pod.
	EphemeralVolumes = "generic ephemeral volumes"
	// NoVolumeClaim and those below are for a PersistentVolumeClaim of which the nodes are not known, or only one at a time.
	NoVolumeClaim      = "a PersistentVolumeClaim that does not exist"
	LeavingVolumeClaim = "a PersistentVolumeClaim that is being deleted"
	OpenVolumeClaim    = "a PersistentVolumeClaim that is not bound"
	SingleNodeVolume   = "a PersistentVolumeClaim that one node at a time may use"
	LostVolume         = "a PersistentVolumeClaim whose volume is lost"
	// NUMA is for a policy by which the scheduler leaves nodes out that have the room.
	NUMA = "a NUMA policy"
	// NoRuntimeClass is for a RuntimeClass that may select nodes, and cannot be read.
	NoRuntimeClass = "a RuntimeClass that does not exist"
)

// ListUnmodelled lists all that the model does not cover.
func ListUnmodelled() []string {
	return append([]string{
		ManyShapes, ManyRules, CrowdedRules, RulesOfShapes, OneDomain, InTurn, OwnLabels, SelectedNamespaces, LabelKeys,
		SpreadPolicies, DeviceClaims, TooMuch, EphemeralVolumes, NoVolumeClaim, LeavingVolumeClaim, OpenVolumeClaim,
		SingleNodeVolume, LostVolume, NUMA, NoRuntimeClass,
	}, devices.ListUnjudged()...)
}

// numaPolicy is the annotation of a pod that Volcano's plugin numa-aware reads (volcano.sh/apis/pkg/apis/scheduling/v1beta1).
// With any policy but noPolicy the plugin leaves out nodes that have not the same, or do not tell of their NUMA nodes
// (volcano.sh/volcano/pkg/scheduler/plugins/numaaware).
const numaPolicy, noPolicy = "volcano.sh/numa-topology-policy", "none"

// beyondModel says which of the things that a pod's annotations and spec ask for the model does not cover; empty for none.
func beyondModel(annotations map[string]string, spec *corev1.PodSpec) string {
	if policy := annotations[numaPolicy]; policy != "" && policy != noPolicy {
		return NUMA
	}
	if len(spec.ResourceClaims) > 0 {
		return DeviceClaims
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == weight.Oversized {
			return TooMuch
		}
		if spec.Volumes[i].Ephemeral != nil {
			return EphemeralVolumes
		}
	}
	return ""
}

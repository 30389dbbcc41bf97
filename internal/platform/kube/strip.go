package kube

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/weight"
)

// StripMetadata drops what no reconciler reads from an object before it is cached.
func StripMetadata(o any) (any, error) {
	if object, ok := o.(client.Object); ok {
		object.SetManagedFields(nil)
		stripAnnotations(object)
		stripLarge(object)
	}
	return o, nil
}

// StripNode keeps what the arbiter reads of a node, and since when it is ready or not. Most of a node is its list of images and
// what its kubelet reports about itself.
func StripNode(o any) (any, error) {
	node, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	stripped := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			CreationTimestamp: node.CreationTimestamp, DeletionTimestamp: node.DeletionTimestamp,
			Annotations: keptOf(node.Annotations, []string{"volcano.sh/node-vgpu-register"}, longestOfNode),
		},
		Spec:   corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{Allocatable: node.Status.Allocatable},
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			stripped.Status.Conditions = []corev1.NodeCondition{{
				Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime,
			}}
		}
	}
	return stripped, nil
}

// StripVolumeClaim keeps what is read of a PersistentVolumeClaim: its volume, its access modes, its size, and whether it is being
// deleted.
func StripVolumeClaim(o any) (any, error) {
	claim, ok := o.(*corev1.PersistentVolumeClaim)
	if !ok {
		return o, nil
	}
	stripped := &corev1.PersistentVolumeClaim{
		ObjectMeta: identityOf(claim),
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: claim.Spec.VolumeName, AccessModes: claim.Spec.AccessModes},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase},
	}
	if size, bound := claim.Status.Capacity[corev1.ResourceStorage]; bound {
		stripped.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: size}
	}
	return stripped, nil
}

// StripVolume keeps what the arbiter reads of a PersistentVolume: which nodes can use it.
func StripVolume(o any) (any, error) {
	volume, ok := o.(*corev1.PersistentVolume)
	if !ok {
		return o, nil
	}
	stripped := &corev1.PersistentVolume{
		ObjectMeta: identityOf(volume), Spec: corev1.PersistentVolumeSpec{NodeAffinity: volume.Spec.NodeAffinity},
	}
	for _, key := range VolumeTopology {
		if value, ok := volume.Labels[key]; ok {
			stripped.Labels = setKey(stripped.Labels, key, value)
		}
	}
	return stripped, nil
}

// VolumeTopology are labels of a PersistentVolume that name the zone or region from which it can be used, several by "__"
// between them, where it does not say so by node affinity (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone).
var VolumeTopology = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// identityOf is the metadata that a cache needs of every object.
func identityOf(o client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}

// StripPod keeps of a pod what reconcilers, the arbiter and the ledger read: metadata, labels, node, phase, since when it is
// bound, what it requests, which others it keeps out, and, until it is bound, where it may go; of a pod that has ended, what
// tells when it did; of a pod of ours its grace, all conditions and the states of its containers. At tens of thousands of pods
// the rest would fill the operator's memory. What pods have alike they share.
func StripPod(userLabel string) func(any) (any, error) {
	var alike Copies
	return func(o any) (any, error) {
		pod, ok := o.(*corev1.Pod)
		if !ok {
			return StripMetadata(o)
		}
		if isStripped(pod) {
			return pod, nil // A list passes here twice, and would be in memory twice.
		}
		stripped := stripPod(pod, userLabel)
		if weight.Of(*stripped) > weight.MostOfPod {
			lighten(stripped)
		}
		alike.sharePod(stripped)
		return stripped, nil
	}
}

// isStripped is true for what is left of a pod: the API server takes no container without a name.
func isStripped(pod *corev1.Pod) bool {
	return len(pod.Spec.Containers) > 0 && pod.Spec.Containers[0].Name == ""
}

func stripPod(pod *corev1.Pod, userLabel string) *corev1.Pod {
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			OwnerReferences: pod.OwnerReferences, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, SchedulerName: pod.Spec.SchedulerName, Priority: pod.Spec.Priority, Overhead: pod.Spec.Overhead,
			ResourceClaims: pod.Spec.ResourceClaims,
			InitContainers: requestsOf(pod.Spec.InitContainers), Containers: requestsOf(pod.Spec.Containers),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, ResourceClaimStatuses: pod.Status.ResourceClaimStatuses},
	}
	if whole := pod.Spec.Resources; whole != nil {
		stripped.Spec.Resources = &corev1.ResourceRequirements{Requests: plainAmounts(whole.Requests)}
	}
	keepLabels(stripped, pod, userLabel)
	stripped.Annotations = keptOf(pod.Annotations, append([]string{
		groupNameKey, v1beta1.AnnotationOwner, v1beta1.AnnotationStepDomain, v1beta1.AnnotationProgress,
		v1beta1.AnnotationCheckpointRequested,
		v1beta1.AnnotationCheckpointDone, userLabel,
	}, ofPlaces...), longestAnnotation)
	stripped.Spec.HostNetwork = pod.Spec.HostNetwork
	keepPorts(stripped.Spec.Containers, pod.Spec.Containers)
	keepPorts(stripped.Spec.InitContainers, pod.Spec.InitContainers)
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && pod.Spec.NodeName != "" {
		if required := a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution; len(required) > 0 {
			stripped.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: required,
			}}
		}
	}
	if pod.Spec.NodeName == "" {
		stripped.Spec.NodeSelector, stripped.Spec.Affinity = pod.Spec.NodeSelector, pod.Spec.Affinity
		stripped.Spec.Tolerations, stripped.Spec.TopologySpreadConstraints = pod.Spec.Tolerations, pod.Spec.TopologySpreadConstraints
		stripped.Spec.Volumes = pod.Spec.Volumes
		stripped.Spec.SchedulingGates = pod.Spec.SchedulingGates
	}
	if kind, _ := OurController(pod); kind != "" {
		stripped.Spec.TerminationGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
		keepWorkerStatus(stripped, pod)
	} else {
		keepTimes(stripped, pod)
	}
	return stripped
}

// plainAmounts has each amount as a number of 64 bits, in thousandths for CPUs. Those with a fraction, such as 1.5Gi, refer to a
// number that resource.PodRequests changes where it adds the overhead to what a pod requests as a whole.
func plainAmounts(list corev1.ResourceList) corev1.ResourceList {
	plain := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			plain[name] = *apiresource.NewMilliQuantity(quantity.MilliValue(), quantity.Format)
		} else {
			plain[name] = *apiresource.NewQuantity(quantity.Value(), quantity.Format)
		}
	}
	return plain
}

// mostLabels is how many labels of a pod are kept, besides ours and its user's: a pod may have a megabyte of them.
const mostLabels = 32

// keepLabels keeps the labels of a pod, by which other pods may have rules about it. Of a pod with very many the first in order
// are kept.
func keepLabels(stripped, pod *corev1.Pod, userLabel string) {
	if len(pod.Labels) <= mostLabels {
		stripped.Labels = pod.Labels
		return
	}
	for i, key := range slices.Sorted(maps.Keys(pod.Labels)) {
		if i < mostLabels || strings.HasPrefix(key, ourLabels) || key == userLabel {
			stripped.Labels = setKey(stripped.Labels, key, pod.Labels[key])
		}
	}
}

// keepPorts keeps the ports of the node that containers take; on the host's network those are all.
func keepPorts(stripped, containers []corev1.Container) {
	for i := range containers {
		for _, p := range containers[i].Ports {
			if p.HostPort != 0 {
				p.Name = ""
				stripped[i].Ports = append(stripped[i].Ports, p)
			}
		}
	}
}

// OurController is the kind and name of the job or merge that controls a pod; empty for other pods.
func OurController(pod *corev1.Pod) (kind, name string) {
	owner := v1beta1.ControllerOf(pod, v1beta1.ElasticTrainingJobKind, v1beta1.MergeJobKind)
	if owner == nil {
		return "", ""
	}
	return owner.Kind, owner.Name
}

// keepTimes keeps since when a pod is bound, and of one that has ended, when its containers did, and since when its conditions
// are what they are, because not all containers may say.
func keepTimes(stripped, pod *corev1.Pod) {
	hasEnded := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	for _, c := range pod.Status.Conditions {
		if hasEnded || c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			stripped.Status.Conditions = append(stripped.Status.Conditions,
				corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	if !hasEnded {
		return
	}
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			stripped.Status.ContainerStatuses = append(stripped.Status.ContainerStatuses, corev1.ContainerStatus{
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: t.FinishedAt}},
			})
		}
	}
}

// ofPlaces are the annotations of a pod that decide where it may be: about shared GPUs, which parts it has and what it asks of
// them (package devices of internal/capacity), and about NUMA nodes.
var ofPlaces = []string{
	"volcano.sh/numa-topology-policy",
	"volcano.sh/vgpu-ids-new", "volcano.sh/vgpu-mode", "volcano.sh/vgpu-podgroup-policy", "nvidia.com/use-gputype",
	"nvidia.com/nouse-gputype",
}

// longestOfNode is how long an annotation of a node may be that is kept. Only administrators and device plugins write those.
const longestOfNode = 16 << 10

// keptOf are those of some annotations that are there and not too long; nil for none.
func keptOf(annotations map[string]string, keys []string, longest int) (kept map[string]string) {
	for _, key := range keys {
		if value, ok := annotations[key]; ok && len(value) <= longest {
			kept = setKey(kept, key, value)
		}
	}
	return kept
}

const (
	ourLabels    = "tideline.io/"
	groupNameKey = "scheduling.k8s.io/group-name"
)

func setKey(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

func requestsOf(containers []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, len(containers))
	for i := range containers {
		kept[i].Resources.Requests = containers[i].Resources.Requests
		kept[i].RestartPolicy = containers[i].RestartPolicy
	}
	return kept
}

func keepWorkerStatus(stripped, pod *corev1.Pod) {
	stripped.Status.Reason, stripped.Status.Message = pod.Status.Reason, pod.Status.Message
	stripped.Status.Conditions = pod.Status.Conditions
	stripped.Status.InitContainerStatuses = statesOf(pod.Status.InitContainerStatuses)
	stripped.Status.ContainerStatuses = statesOf(pod.Status.ContainerStatuses)
}

// statesOf keeps how containers ended, how often they restarted, what they wait for, and which of their devices are unhealthy.
func statesOf(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for _, c := range all {
		unhealthy := unhealthyOf(c.AllocatedResourcesStatus)
		if c.State.Terminated != nil || c.State.Waiting != nil || c.RestartCount > 0 || len(unhealthy) > 0 {
			kept = append(kept, corev1.ContainerStatus{
				Name: c.Name, RestartCount: c.RestartCount, LastTerminationState: c.LastTerminationState,
				State:                    corev1.ContainerState{Terminated: c.State.Terminated, Waiting: c.State.Waiting},
				AllocatedResourcesStatus: unhealthy,
			})
		}
	}
	return kept
}

// mostUnhealthy is how many unhealthy devices of a container are kept: one is enough to blame the node.
const mostUnhealthy = 16

// unhealthyOf keeps the devices that a kubelet says are unhealthy.
func unhealthyOf(all []corev1.ResourceStatus) []corev1.ResourceStatus {
	var kept []corev1.ResourceStatus
	for _, of := range all {
		for _, device := range of.Resources {
			if device.Health == corev1.ResourceHealthStatusUnhealthy && len(kept) < mostUnhealthy {
				kept = append(kept, corev1.ResourceStatus{Name: of.Name, Resources: []corev1.ResourceHealth{device}})
			}
		}
	}
	return kept
}

package podstate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nodeReasons are reasons of failed pods that blame the node although containers may have run: a kubelet that restarts checks
// the pods that it finds again (k8s.io/kubernetes/pkg/kubelet/lifecycle, pkg/kubelet/nodeshutdown,
// pkg/kubelet/cm/topologymanager). If the node lacks a resource the reason begins with outOf.
var nodeReasons = []string{"UnexpectedAdmissionError", "NodeAffinity", "NodeShutdown", "TopologyAffinityError"}

const outOf = "OutOf"

// podReasons are reasons of pods that failed before a container ran, because of what the pod asks for: other nodes would reject
// it too (k8s.io/kubernetes/pkg/kubelet/lifecycle, pkg/kubelet/sysctl).
var podReasons = []string{
	"SysctlForbidden", "AppArmor", "PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch", "PodLevelResourcesNotAdmittedReason",
}

// deadlineExceeded is the reason of a pod that ran for the activeDeadlineSeconds in its own spec.
const deadlineExceeded = "DeadlineExceeded"

// deviceUnhealthy is the reason of a failure while the kubelet says that a device of the pod is unhealthy.
const deviceUnhealthy = "DeviceUnhealthy"

// unhealthyDevices are the devices of a pod that its kubelet says are unhealthy, as "nvidia.com/gpu GPU-1"; none where kubelets
// do not say (feature ResourceHealthStatus).
func unhealthyDevices(pod *corev1.Pod) []string {
	var all []string
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, of := range c.AllocatedResourcesStatus {
			for _, device := range of.Resources {
				if device.Health == corev1.ResourceHealthStatusUnhealthy {
					all = append(all, string(of.Name)+" "+string(device.ResourceID))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all) // Init containers may share devices with others.
}

// rejectedByNode is true if a pod failed because of its node: by a device of it, by the kubelet's reason, or because none of its
// containers ever ended. A pod whose program failed has a container that ended.
func rejectedByNode(pod *corev1.Pod) bool {
	reason := pod.Status.Reason
	switch {
	case pod.Status.Phase != corev1.PodFailed || pod.Spec.NodeName == "" || reason == deadlineExceeded,
		slices.Contains(podReasons, reason):
		return false
	case slices.Contains(nodeReasons, reason) || strings.HasPrefix(reason, outOf) || failureOf(pod).Reason == deviceUnhealthy:
		return true
	}
	return !slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses),
		func(c corev1.ContainerStatus) bool {
			return c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
		})
}

// SpeaksOfNode is true for a rejection that says that something is wrong with the node, and not only that another pod was
// quicker, that its labels changed or that it was shut down.
func (f Failure) SpeaksOfNode() bool {
	return !strings.HasPrefix(f.Reason, outOf) && f.Reason != "NodeAffinity" && f.Reason != "NodeShutdown" &&
		f.Reason != "TopologyAffinityError"
}

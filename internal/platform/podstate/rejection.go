package podstate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nodeReasons are reasons of failed pods that speak of the node although containers may have run: a kubelet that starts again
// asks the same questions of the pods that it finds (k8s.io/kubernetes/pkg/kubelet/lifecycle, pkg/kubelet/nodeshutdown,
// pkg/kubelet/cm/topologymanager). Pods that are short of a resource have a reason that begins with outOf.
var nodeReasons = []string{"UnexpectedAdmissionError", "NodeAffinity", "NodeShutdown", "TopologyAffinityError"}

const outOf = "OutOf"

// podReasons are reasons of failed pods that no container of ran in, and that speak of what the pod asks for: every node of the
// kind would say the same (k8s.io/kubernetes/pkg/kubelet/lifecycle, pkg/kubelet/sysctl).
var podReasons = []string{
	"SysctlForbidden", "AppArmor", "PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch", "PodLevelResourcesNotAdmittedReason",
}

// deadlineExceeded is the reason of a pod that ran for the activeDeadlineSeconds of its own spec.
const deadlineExceeded = "DeadlineExceeded"

// rejectedByNode tells whether a pod failed for its node: by the reason that the kubelet gives, or because no container of it
// ever ended, which a pod whose program failed has to show.
func rejectedByNode(pod *corev1.Pod) bool {
	reason := pod.Status.Reason
	switch {
	case pod.Status.Phase != corev1.PodFailed || pod.Spec.NodeName == "" || reason == deadlineExceeded,
		slices.Contains(podReasons, reason):
		return false
	case slices.Contains(nodeReasons, reason) || strings.HasPrefix(reason, outOf):
		return true
	}
	return !slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses),
		func(c corev1.ContainerStatus) bool {
			return c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
		})
}

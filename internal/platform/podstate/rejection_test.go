package podstate

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestPodsThatNoNodeTakesAreTheJobsFault(t *testing.T) {
	for _, reason := range podReasons {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason}}
		NewWithT(t).Expect(ReadWorker(pod, 1).Rejected).To(BeFalse(), reason)
	}
}

func TestAFailureOnAnUnhealthyDeviceIsTheNodes(t *testing.T) {
	on := func(health corev1.ResourceHealthStatus) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{
			Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "trainer",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					ExitCode: 1, Reason: "Error", Message: "NCCL timeout",
				}},
				AllocatedResourcesStatus: []corev1.ResourceStatus{{
					Name: "nvidia.com/gpu", Resources: []corev1.ResourceHealth{{ResourceID: "GPU-1", Health: health}},
				}},
			}},
		}}
	}
	g := NewWithT(t)
	for _, health := range []corev1.ResourceHealthStatus{corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnknown} {
		w := ReadWorker(on(health), 1)
		g.Expect(w.Rejected).To(BeFalse(), string(health))
		g.Expect(w.Failure.String()).To(Equal(" with exit code 1 (Error): NCCL timeout"))
	}
	w := ReadWorker(on(corev1.ResourceHealthStatusUnhealthy), 1)
	g.Expect(w.Rejected).To(BeTrue(), "its own program may have failed for it")
	g.Expect(w.Failure.SpeaksOfNode()).To(BeTrue(), "and it counts against the node")
	g.Expect(w.Failure.String()).To(Equal(" with exit code 1 (DeviceUnhealthy): unhealthy: nvidia.com/gpu GPU-1"))
	evicted := on(corev1.ResourceHealthStatusUnhealthy)
	evicted.Status.Reason = "Evicted"
	g.Expect(ReadWorker(evicted, 1).Failure.Reason).To(Equal("Error"), "who was evicted did not fail for a device")
	goesOn := on(corev1.ResourceHealthStatusUnhealthy)
	goesOn.Status.Phase = corev1.PodRunning
	g.Expect(ReadWorker(goesOn, 1).Failure.Reason).To(Equal("Error"), "nor one that was restarted in place")
	killed := on(corev1.ResourceHealthStatusUnhealthy)
	killed.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled"
	g.Expect(ReadWorker(killed, 1).Rejected).To(BeFalse(), "no device takes memory")
}

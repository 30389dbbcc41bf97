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

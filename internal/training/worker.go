package training

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// WorkerOf reads a pod. It returns false for a pod that is no worker of the job that controls it. The index is read from the
// name, which nobody can change.
func WorkerOf(pod *corev1.Pod) (podstate.Worker, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return podstate.Worker{}, false
	}
	index, ok := rendezvous.WorkerIndex(owner.Name, pod.Name)
	if !ok {
		return podstate.Worker{}, false
	}
	return podstate.ReadWorker(pod, index), true
}

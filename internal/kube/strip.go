package kube

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StripMetadata drops what no reconciler reads from an object before it is cached.
func StripMetadata(o any) (any, error) {
	if object, ok := o.(client.Object); ok {
		object.SetManagedFields(nil)
	}
	return o, nil
}

// StripPod keeps of a pod what reconcilers read: metadata, node, phase, conditions and the states of its containers. At
// tens of thousands of pods the rest would fill the operator's memory.
func StripPod(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return StripMetadata(o)
	}
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, OwnerReferences: pod.OwnerReferences,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message, Conditions: pod.Status.Conditions,
		},
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			stripped.Status.ContainerStatuses = append(stripped.Status.ContainerStatuses,
				corev1.ContainerStatus{Name: c.Name, State: c.State})
		}
	}
	return stripped, nil
}

package trainingpod

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// podVolume is the volume that shows a pod's own annotations to its training container.
const podVolume = "tideline-pod"

// prepareCheckpoint mounts a file that shows the training when a checkpoint is requested, and gives workers the time to end after
// it. The file needs no rights and no sidecar: the kubelet writes it from the pod's annotation.
func (b Blueprint) prepareCheckpoint(pod *corev1.Pod, trainer *corev1.Container, i int32) {
	grace := ptr.Deref(b.Job.Spec.Checkpoint.GraceSeconds, 0)
	if grace == 0 {
		return
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: podVolume, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
			Path: path.Base(v1beta1.CheckpointFile),
			FieldRef: &corev1.ObjectFieldSelector{
				FieldPath: "metadata.annotations['" + v1beta1.AnnotationCheckpointRequested + "']",
			},
		}}},
	}})
	trainer.VolumeMounts = append(trainer.VolumeMounts, corev1.VolumeMount{
		Name: podVolume, MountPath: path.Dir(v1beta1.CheckpointFile), ReadOnly: true,
	})
	// The container may take at least the grace to end. Surplus that Volcano evicts first sleeps for the grace, during which it
	// trains on while worker 0 saves.
	end := max(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds), int64(grace))
	if i >= b.Attempt.MinReplicas {
		if trainer.Lifecycle == nil {
			trainer.Lifecycle = &corev1.Lifecycle{}
		}
		if trainer.Lifecycle.PreStop == nil {
			trainer.Lifecycle.PreStop = &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: int64(grace)}}
			end += int64(grace)
		}
	}
	pod.Spec.TerminationGracePeriodSeconds = &end
}

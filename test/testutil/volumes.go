package testutil

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Claim makes a PersistentVolumeClaim for many nodes that is bound to a volume, which is a folder of each node. Nobody else binds
// volumes on the local cluster.
func (s *Scenario) Claim(name, folder string) {
	s.t.Helper()
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}, StorageClassName: ptr.To(""),
			VolumeName: s.Namespace + "-" + name,
		},
	}
	s.Create(claim)
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: modes, Capacity: size,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}},
			ClaimRef:               &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		},
	}
	s.Create(volume)
	s.t.Cleanup(func() {
		err := s.Client.Delete(context.WithoutCancel(s.ctx), volume)
		s.must(client.IgnoreNotFound(err), "delete the volume "+volume.Name)
	})
	volume.Status.Phase = corev1.VolumeBound
	s.must(s.Client.Status().Update(s.ctx, volume), "bind a volume")
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: modes, Capacity: size}
	s.must(s.Client.Status().Update(s.ctx, claim), "bind claim "+name)
}

package trainingpod

import corev1 "k8s.io/api/core/v1"

// DefaultAccount is the ServiceAccount that the API server gives pods that name none.
const DefaultAccount = "default"

// ServiceAccountOf is the ServiceAccount that a template names, and the field that names it; both are empty if none does. The
// API server still reads the older of two fields when the newer is empty (Convert_v1_PodSpec_To_core_PodSpec in
// k8s.io/kubernetes/pkg/apis/core/v1).
func ServiceAccountOf(spec *corev1.PodSpec) (account, name string) {
	if spec.ServiceAccountName != "" {
		return spec.ServiceAccountName, "serviceAccountName"
	}
	if older := spec.DeprecatedServiceAccount; older != "" {
		return older, "serviceAccount"
	}
	return "", ""
}

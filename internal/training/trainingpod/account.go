package trainingpod

import corev1 "k8s.io/api/core/v1"

// DefaultAccount is the ServiceAccount as which pods run that name none, as the API server has it.
const DefaultAccount = "default"

// Account is the ServiceAccount that a template names, and the name of the field in which it stands; both are empty where it
// names none. The API server still takes the older of two fields where the newer is empty (Convert_v1_PodSpec_To_core_PodSpec
// in k8s.io/kubernetes/pkg/apis/core/v1).
func Account(spec *corev1.PodSpec) (account, name string) {
	if spec.ServiceAccountName != "" {
		return spec.ServiceAccountName, "serviceAccountName"
	}
	if older := spec.DeprecatedServiceAccount; older != "" {
		return older, "serviceAccount"
	}
	return "", ""
}

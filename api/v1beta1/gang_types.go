package v1beta1

import "k8s.io/apimachinery/pkg/types"

// GangRef names a gang that Volcano places together: that of a training, a merge, or another workload.
type GangRef struct { //nolint:recvcheck // Deep copies are generated for pointers, and fmt prints values.
	// Namespace of the gang.
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// Name of its job; for a gang of another kind, of its PodGroup.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// RefTo returns the reference to a gang with this key.
func RefTo(key types.NamespacedName) GangRef {
	return GangRef{Namespace: key.Namespace, Name: key.Name}
}

// Key is the namespace and name of the gang.
func (r GangRef) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// String returns namespace/name.
func (r GangRef) String() string { return r.Key().String() }

// MaxRoomSources is how many jobs the status of another names that make room for it.
const MaxRoomSources = 16

// RoomSource is a job whose surplus makes room for another.
type RoomSource struct {
	// Namespace of the job.
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// Name of the job.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Workers is how many of its workers leave.
	Workers int32 `json:"workers"`
}

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProfileReservation is room that is gathered, held together and handed over to one training.
type ProfileReservation struct {
	// Name of the reservation.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Replicas is how many times resources are held, each on one node. Range 1 to 4096.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	Replicas int32 `json:"replicas"`

	// Resources that are held so many times, such as nvidia.com/gpu.
	// +required
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="resources must not be empty: name what is held, such as nvidia.com/gpu"
	// +kubebuilder:validation:XValidation:rule="self.all(r, !isQuantity(string(self[r])) || quantity(string(self[r])).compareTo(quantity('0')) > 0)",message="resources must be more than 0: raise them, or leave the resource out"
	Resources corev1.ResourceList `json:"resources"`

	// Until is when the room is released if no job took it.
	// +required
	Until metav1.Time `json:"until"`

	// JobRef names the ElasticTrainingJob, in a namespace of the profile, that takes the room once it waits for room.
	// +required
	JobRef ObjectRef `json:"jobRef"`

	// Owner of that ElasticTrainingJob, by the API server's name. A job with the same name and another owner gets nothing.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Owner string `json:"owner"`

	// Tier whose priority is used to gather room. Default: the tier of the profile's jobs that name none.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Tier string `json:"tier,omitempty"`

	FormerReservation `json:",inline"`
}

// ReservationPhase is the state of a reservation.
// Clients must expect further phases.
//
// +kubebuilder:validation:MaxLength=32
type ReservationPhase string

// Phases of a reservation.
const (
	// ReservationGathering: the reservation waits for its room, as a gang does.
	ReservationGathering ReservationPhase = "Gathering"
	// ReservationHeld: all of the room is held.
	ReservationHeld ReservationPhase = "Held"
	// ReservationHandingOver: the task's gang claims room, and goes first from now on.
	ReservationHandingOver ReservationPhase = "HandingOver"
	// ReservationHandedOver: the task has the room. The reservation holds nothing.
	ReservationHandedOver ReservationPhase = "HandedOver"
	// ReservationExpired: no job took the room in time, and it is released.
	ReservationExpired ReservationPhase = "Expired"
)

// ReservationStatus is the state of a reservation.
type ReservationStatus struct {
	// Name of the reservation.
	// +required
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// Phase is the state of the reservation.
	// +required
	Phase ReservationPhase `json:"phase"`
	// Placed is how many of its replicas hold their room.
	// +optional
	// +kubebuilder:default=0
	Placed int32 `json:"placed"`
	// Since is when the reservation was first seen. It is for a training that is created from then on.
	// +optional
	Since metav1.Time `json:"since,omitempty"`
	// Reason is, in one word, why the room cannot be gathered, or why a training of that name does not get it; empty for none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message is the API server's refusal, or what keeps the training from the room, and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Job that takes the room; absent while there is none.
	// +optional
	Job *GangRef `json:"job,omitempty"`
}

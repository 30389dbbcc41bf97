package v1alpha1

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

	// Until is when the room is given back if nobody took it.
	// +required
	Until metav1.Time `json:"until"`

	// ForTask is the name of the ElasticTrainingJob, in a namespace of the profile, that takes the room once it waits for room.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ForTask string `json:"forTask"`

	// ForOwner is who takes the room, as the API server knows them: the owner of that ElasticTrainingJob. One of the same name that
	// is of somebody else gets nothing.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ForOwner string `json:"forOwner"`

	// Tier by whose priority room is gathered. Default: that of jobs of the profile that name none.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Tier string `json:"tier,omitempty"`
}

// ReservationPhase is how far a reservation is.
//
// +kubebuilder:validation:Enum=Gathering;Held;HandingOver;HandedOver;Expired
type ReservationPhase string

// Phases of a reservation.
const (
	// ReservationGathering: the room is waited for, as by a gang.
	ReservationGathering ReservationPhase = "Gathering"
	// ReservationHeld: all of the room is held.
	ReservationHeld ReservationPhase = "Held"
	// ReservationHandingOver: the task's gang claims room, and goes first from now on.
	ReservationHandingOver ReservationPhase = "HandingOver"
	// ReservationHandedOver: the room is the task's. The reservation holds nothing any more.
	ReservationHandedOver ReservationPhase = "HandedOver"
	// ReservationExpired: nobody took the room in time. It is given back.
	ReservationExpired ReservationPhase = "Expired"
)

// ReservationStatus is what became of a reservation.
type ReservationStatus struct {
	// Name of the reservation.
	// +required
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// Phase is how far it is.
	// +required
	Phase ReservationPhase `json:"phase"`
	// Placed is how many of its replicas hold their room.
	// +optional
	// +kubebuilder:default=0
	Placed int32 `json:"placed"`
	// Since is when the reservation was first seen. It is for a training that is created from then on.
	// +optional
	Since metav1.Time `json:"since,omitempty"`
	// Reason says in one word why the room cannot be gathered, or why a training of that name does not get it; empty for nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message says what the API server said against the room, or what keeps the training from it, and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Job that takes the room, as namespace/name.
	// +optional
	// +kubebuilder:validation:MaxLength=127
	Job string `json:"job,omitempty"`
}

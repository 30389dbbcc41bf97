package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProfileNamespacesLimit is how many namespaces the status of a profile names.
const ProfileNamespacesLimit = 100

// ResourceQuotaProfileStatus is what became of a profile, and what the team uses. Figures are as of when the status was last
// written, which is every 10 seconds at most while pods come and go.
type ResourceQuotaProfileStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Reason says in one word how the profile is.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message says how the profile is, in a sentence with the figures and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// Conditions of the profile: Ready, Reconciling, Stalled, NamespaceConflict, Overcommitted, BudgetExceeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Queue is the Volcano Queue of the profile, once it exists.
	// +optional
	Queue string `json:"queue,omitempty"`
	// Namespaces are those of the profile, the first 100 by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Namespaces []string `json:"namespaces,omitempty"`
	// NamespaceCount is how many namespaces the profile has.
	// +optional
	NamespaceCount int32 `json:"namespaceCount,omitempty"`
	// Deserved is the queue's share, by resource.
	// +optional
	Deserved corev1.ResourceList `json:"deserved,omitempty"`
	// Used is what pods hold on nodes in the profile's namespaces, whoever made them, of the resources in deserved.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// Borrowed is what is used beyond the share.
	// +optional
	Borrowed corev1.ResourceList `json:"borrowed,omitempty"`
	// Lent is the idle part of the share that other profiles hold beyond theirs.
	// +optional
	Lent corev1.ResourceList `json:"lent,omitempty"`
	// Accelerators is used/deserved/capability of all accelerators together, as `kubectl get` shows it; a dash for no limit.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Accelerators string `json:"accelerators,omitempty"`
	// Running is how many trainings and merges of the profile's namespaces run.
	// +optional
	// +kubebuilder:default=0
	Running int32 `json:"running"`
	// OverBudget are the users who have used up a budget, the first 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	OverBudget []OverBudget `json:"overBudget,omitempty"`
	// Reservations tell what became of each.
	// +optional
	// +listType=map
	// +listMapKey=name
	Reservations []ReservationStatus `json:"reservations,omitempty"`
	// Waiting is how many of them wait for room or for their turn.
	// +optional
	// +kubebuilder:default=0
	Waiting int32 `json:"waiting"`
	// AwaitingApproval is how many of them wait for somebody to approve their tier.
	// +optional
	// +kubebuilder:default=0
	AwaitingApproval int32 `json:"awaitingApproval"`
}

// OverBudgetLimit is how many users the status of a profile names who have used up a budget.
const OverBudgetLimit = 100

// OverBudget is a user who has used up a budget.
type OverBudget struct {
	// User as the API server knows them.
	// +required
	// +kubebuilder:validation:MaxLength=256
	User string `json:"user"`
	// Window of the budget.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	Window metav1.Duration `json:"window"`
	// UsedHours is how many hours of one accelerator were used in it, in whole hours.
	// +required
	UsedHours int64 `json:"usedHours"`
	// MaxHours is how many there may be.
	// +required
	MaxHours int64 `json:"maxHours"`
	// OnExceeded says what becomes of the user's jobs.
	// +optional
	OnExceeded OnExceeded `json:"onExceeded,omitempty"`
}

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProfileNamespacesLimit is how many namespaces the status of a profile names.
const ProfileNamespacesLimit = 100

// ResourceQuotaProfileStatus is the state of a profile, and what the team uses. Figures are those of the last write of the
// status, at most every 10 seconds while pods come and go.
type ResourceQuotaProfileStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Reason is the state of the profile in one word.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message is the state of the profile in a sentence, with the figures and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// Conditions of the profile: Ready, Reconciling and Stalled always; NamespaceConflict, Overcommitted, BudgetExceeded,
	// LedgerVolatile, OtherWorkloadsRefused, AcceleratorsIdle and IdleNotebooksStopped where there is something to say.
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
	// Used is what all pods in the profile's namespaces hold on nodes, of the resources in deserved.
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
	// Tiers are what pods of each tier hold, pods that Tideline did not create under an empty name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Tiers []UsageStatus `json:"tiers,omitempty"`
	// Users are what pods of each user hold, the 20 with the most. Pods without an owner are under an empty name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Users []UsageStatus `json:"users,omitempty"`
	// Available is what a job of the team could get now, by model of accelerator, without evictions and with. It is computed at most
	// once a minute.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Available []AvailableStatus `json:"available,omitempty"`
	// OverBudget are the users who have used up a budget, the first 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	OverBudget []OverBudget `json:"overBudget,omitempty"`
	// StoppedNotebooks are the Notebooks that the operator stopped last, the latest first, at most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	StoppedNotebooks []StoppedNotebook `json:"stoppedNotebooks,omitempty"`
	// Reservations are the states of the reservations.
	// +optional
	// +listType=map
	// +listMapKey=name
	Reservations []ReservationStatus `json:"reservations,omitempty"`
	// DataSets are the versions of spec.dataSets, each with the jobs that use it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=256
	DataSets []DataSetStatus `json:"dataSets,omitempty"`
	// Waiting is how many of them wait for room or for their turn.
	// +optional
	// +kubebuilder:default=0
	Waiting int32 `json:"waiting"`
	// AwaitingApproval is how many of them wait for approval of their tier.
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
	// OnExceeded is what happens to the user's new jobs.
	// +optional
	OnExceeded OnExceeded `json:"onExceeded,omitempty"`
}

// StoppedNotebooksLimit is how many Notebooks the status of a profile names that were stopped.
const StoppedNotebooksLimit = 16

// StoppedNotebook is a Notebook that the operator stopped because its accelerators were not in use.
type StoppedNotebook struct {
	// Namespace of the Notebook.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// Name of the Notebook.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// User who owned its pod; empty if that is unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	User string `json:"user,omitempty"`
	// Held is how many accelerators it held: 8, or 0.5 where devices are shared.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +kubebuilder:validation:MaxLength=32
	Held string `json:"held"`
	// IdleHours is for how many whole hours they were not in use.
	// +required
	IdleHours int64 `json:"idleHours"`
	// AsOf is until when their use was known then.
	// +required
	AsOf metav1.Time `json:"asOf"`
	// Time is when the Notebook was stopped.
	// +required
	Time metav1.Time `json:"time"`
}

// Bounds of what the status of a profile lists.
const (
	UsersLimit, TiersLimit, AvailableLimit = 20, 64, 64
)

// UsageStatus is how many accelerators a tier or a user holds.
type UsageStatus struct {
	// Name of the tier or user.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// Held is how many accelerators are held, all that the operator's configuration knows together: 8, or 0.5 where devices are
	// shared.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +kubebuilder:validation:MaxLength=32
	Held string `json:"held"`
}

// AvailableStatus is what a job of the team could have now of one model of accelerator.
type AvailableStatus struct {
	// Resource of the accelerator.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`
	// Model of it; empty for nodes that name none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Model string `json:"model,omitempty"`
	// Free is how many workers of one accelerator could be placed.
	// +required
	Free int32 `json:"free"`
	// LargestGang is how many accelerators a gang could have whose workers each take a whole node, as large as the largest of them.
	// +required
	LargestGang int64 `json:"largestGang"`
	// FreeWithSurplus is Free if all surplus left that gives way to a gang of the team.
	// +optional
	FreeWithSurplus int32 `json:"freeWithSurplus"`
	// LargestGangWithSurplus is LargestGang if all that surplus left.
	// +optional
	LargestGangWithSurplus int64 `json:"largestGangWithSurplus"`
}

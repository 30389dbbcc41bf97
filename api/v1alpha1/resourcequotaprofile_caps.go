package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// Standing orders the jobs of one tier that wait for their turn.
//
// +kubebuilder:validation:Enum=senior;staff;intern
type Standing string

// Standings, the first to go first.
const (
	StandingSenior Standing = "senior"
	StandingStaff  Standing = "staff"
	StandingIntern Standing = "intern"
)

// ProfileMember is somebody of the team.
type ProfileMember struct {
	// User as the API server knows them, who is the owner of their jobs.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	User string `json:"user"`

	// Standing orders the user's jobs among those of the same tier that wait for their turn: senior before staff, and staff before
	// intern. Default staff.
	// +optional
	// +kubebuilder:default=staff
	Standing Standing `json:"standing,omitempty"`

	// MaxTier is the highest tier that the user's jobs may have. Default: the highest of the profile.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	MaxTier string `json:"maxTier,omitempty"`
}

// OtherWorkloads says whether pods that are not of Tideline's jobs count.
//
// +kubebuilder:validation:Enum=Count;Ignore
type OtherWorkloads string

// Values of OtherWorkloads.
const (
	OtherWorkloadsCount  OtherWorkloads = "Count"
	OtherWorkloadsIgnore OtherWorkloads = "Ignore"
)

// ProfileCaps are what one user and one job may hold at a time. A job that could never keep them is refused; one that cannot now
// waits for its turn, by tier, standing and age. Surplus workers are created within them, and give way to what waits for them.
type ProfileCaps struct {
	// PerUser are what all pods of one user in the profile's namespaces may hold together.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	PerUser []ResourceCap `json:"perUser,omitempty"`

	// PerJob are what one job may hold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	PerJob []ResourceCap `json:"perJob,omitempty"`

	// OtherWorkloads is Count where pods that are not of Tideline's jobs, as those of notebooks and PyTorchJobs, count for the user
	// whom their label names (ledger.userLabel of the operator's configuration), and Ignore where they do not. Default Count.
	// +optional
	// +kubebuilder:default=Count
	OtherWorkloads OtherWorkloads `json:"otherWorkloads,omitempty"`
}

// ResourceCap is the most of one resource.
type ResourceCap struct {
	// Resource such as nvidia.com/gpu, cpu or memory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`

	// Model counts only accelerators of this model, as the nodes' label names it. A job that names no model counts for that of the
	// node that it came to. Default: all models together.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Model string `json:"model,omitempty"`

	// Max is the most that may be held, 0 for none.
	// +required
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('0')) >= 0",message="max must not be negative: set 0 or more"
	Max resource.Quantity `json:"max"`
}

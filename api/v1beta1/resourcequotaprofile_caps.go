package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Standing orders the jobs of one tier that wait for their turn.
//
// +kubebuilder:validation:Enum=Senior;Staff;Intern
type Standing string

// Standings, the first to go first.
const (
	StandingSenior Standing = "Senior"
	StandingStaff  Standing = "Staff"
	StandingIntern Standing = "Intern"
)

// MemberKind tells users from groups of users.
//
// +kubebuilder:validation:Enum=User;Group
type MemberKind string

const (
	// MemberUser is a user, who is the owner of the jobs.
	MemberUser MemberKind = "User"
	// MemberGroup is a group of users. A job counts for it if its owner created the job and was in the group then, and a profile
	// already named the group.
	MemberGroup MemberKind = "Group"
)

// ProfileMember is a user or a group of users of the team.
type ProfileMember struct {
	// Kind is User, who is the owner of the jobs, or Group. A job counts for a group if its owner created the job and was in the
	// group then, and a profile already named the group.
	// +required
	Kind MemberKind `json:"kind"`

	// Name of the user or group, as the API server knows it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Standing orders the member's jobs among those of the same tier that wait for their turn: Senior before Staff, and Staff before
	// Intern. Default Staff.
	// +optional
	// +kubebuilder:default=Staff
	Standing Standing `json:"standing,omitempty"`

	// MaxTier is the highest tier that the member's jobs may have. Default: the highest of the profile.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	MaxTier string `json:"maxTier,omitempty"`

	FormerMember `json:",inline"`
}

// OtherWorkloads chooses whether pods outside Tideline's jobs count, or may have accelerators at all.
//
// +kubebuilder:validation:Enum=Count;Ignore;Refuse
type OtherWorkloads string

// Values of OtherWorkloads.
const (
	OtherWorkloadsCount  OtherWorkloads = "Count"
	OtherWorkloadsIgnore OtherWorkloads = "Ignore"
	// OtherWorkloadsRefuse: the API server refuses new ones that ask for accelerators. Those that are there count.
	OtherWorkloadsRefuse OtherWorkloads = "Refuse"
)

// ProfileCaps are limits of what one user and one job may hold at a time. Tideline refuses a job that exceeds them by
// itself. A job that would exceed them now waits, in the order of tier, standing and age. Surplus workers are created
// within them, and make room for cores that wait.
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

	// AcceleratorHours are budgets of accelerator hours that one user may use in a window of time, by the ledger. Without a ledger
	// they block no job.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	AcceleratorHours []HourCap `json:"acceleratorHours,omitempty"`

	// OtherWorkloads chooses whether pods outside Tideline's jobs, such as notebooks and PyTorchJobs, count for the user that
	// their label names (ledger.userLabel of the operator's configuration): Count or Ignore. With Refuse the API server also
	// refuses new ones that ask for accelerators, for other devices that the profile limits, or for resource claims; condition
	// OtherWorkloadsRefused says whether it does. Default Count.
	// +optional
	// +kubebuilder:default=Count
	OtherWorkloads OtherWorkloads `json:"otherWorkloads,omitempty"`

	FormerCaps `json:",inline"`
}

// OnExceeded chooses what happens to new jobs of a user who has used up a budget.
//
// +kubebuilder:validation:Enum=Queue;Deny;Notify
type OnExceeded string

// Values of OnExceeded.
const (
	// ExceededQueue: jobs that ask for accelerators wait until enough of the use is older than the window.
	ExceededQueue OnExceeded = "Queue"
	// ExceededDeny: admission also refuses new jobs.
	ExceededDeny OnExceeded = "Deny"
	// ExceededNotify: condition BudgetExceeded reports it, and no job waits.
	ExceededNotify OnExceeded = "Notify"
)

// HourCap is a budget of accelerators × time. Once it is used up, running jobs continue, but their surplus does not grow.
type HourCap struct {
	// Window of time that ends now, such as 168h. Range 1h to 8784h.
	// +required
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('8784h')",message="window must be from 1h to 8784h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	Window metav1.Duration `json:"window"`

	// PerUser is how many hours of one accelerator a user may use in it, all accelerators together. Range 0 to 10000000.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	PerUser int32 `json:"perUser"`

	// OnExceeded chooses what happens to the user's new jobs then. Default Queue.
	// +optional
	// +kubebuilder:default=Queue
	OnExceeded OnExceeded `json:"onExceeded,omitempty"`
}

// ResourceCap is the most of one resource.
type ResourceCap struct {
	// Resource such as nvidia.com/gpu, cpu or memory; pods counts pods.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == '' || self in ['cpu', 'memory', 'ephemeral-storage', 'pods'] || self.startsWith('hugepages-') || self.contains('/')",message="resource is nothing that pods hold: write cpu, memory, ephemeral-storage, pods, hugepages-SIZE, or a device such as nvidia.com/gpu"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`

	// Model counts only accelerators of this model, as the nodes' label names it. A job that names no model counts for the
	// model of its node. Default: all models together.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Model string `json:"model,omitempty"`

	// Max is the most that may be held, 0 for none.
	// +required
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('0')) >= 0",message="max must not be negative: set 0 or more"
	Max resource.Quantity `json:"max"`
}

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SizingMode says what becomes of what a task was seen using: Disabled, nothing; Recommend, its jobs say what they could ask for;
// Enforce, their pods ask for that when an attempt starts.
//
// +kubebuilder:validation:Enum=Disabled;Recommend;Enforce
type SizingMode string

// Values of SizingMode.
const (
	SizingDisabled  SizingMode = "Disabled"
	SizingRecommend SizingMode = "Recommend"
	SizingEnforce   SizingMode = "Enforce"
)

// ProfileSizing says what becomes of what the team's tasks were seen using.
type ProfileSizing struct {
	// Mode of jobs that choose none. Default Recommend.
	// +optional
	// +kubebuilder:default=Recommend
	Mode SizingMode `json:"mode,omitempty"`

	// Window is for how long back it counts what was used: whole days, from 24h to 672h (28 days). Default 168h.
	// +optional
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('24h') && duration(self) <= duration('672h') && duration(self).getSeconds() % 86400 == 0",message="window must be whole days, from 24h to 672h: write 168h for a week"
	Window *metav1.Duration `json:"window,omitempty"`
}

// JobSizing says what becomes of what the job's task was seen using.
type JobSizing struct {
	// Mode of this job. Disabled keeps its requests as they are and says nothing; Recommend keeps them and says what they could be.
	// Default: what the profile of the namespace says, and Recommend without one.
	// +optional
	Mode SizingMode `json:"mode,omitempty"`
}

// Why a resource of a container was sized as it was.
const (
	// SizedByUse: less than was requested, by what was used.
	SizedByUse = "Use"
	// SizedFits: what was requested is no more than what use calls for.
	SizedFits = "Fits"
	// SizedByHistory: under a day was seen, or less than 80 % of the time that the task ran, and nothing is cut.
	SizedByHistory = "InsufficientHistory"
	// SizedByMetrics: what was used lately is not known, and nothing is cut anew.
	SizedByMetrics = "MetricsUnavailable"
	// SizedHeld: the container was held down by its limits, so that nobody knows how much it needs, and nothing is cut.
	SizedHeld = "Held"
	// SizedByOOM: containers were killed for want of memory; nothing is cut, and the request may be raised.
	SizedByOOM = "OOMKilled"
)

// SizedResource is what became of one request of a container.
type SizedResource struct {
	// Role of the pod: master, which is worker 0 of a job or the first pod of a merge, or worker.
	// +kubebuilder:validation:MaxLength=16
	Role string `json:"role"`
	// Container by name.
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container"`
	// Resource is cpu or memory.
	// +kubebuilder:validation:MaxLength=16
	Resource string `json:"resource"`
	// Requested is what the template asks for.
	Requested resource.Quantity `json:"requested"`
	// Sized is what use calls for: what the container requests under Enforce, and what it could request under Recommend.
	Sized resource.Quantity `json:"sized"`
	// Reason in one word: Use, Fits, InsufficientHistory, MetricsUnavailable, Held or OOMKilled.
	// +kubebuilder:validation:MaxLength=32
	Reason string `json:"reason"`
	// Message says how it came about, with the figures.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// OOMKilledTime is when a container that had been given less than was requested was last killed for want of memory, in this job.
	// As long as that is within the window, nothing is cut.
	// +optional
	OOMKilledTime *metav1.Time `json:"oomKilledTime,omitempty"`
}

// SizingStatus is what use called for when the current attempt or run started.
type SizingStatus struct {
	// Mode in effect.
	Mode SizingMode `json:"mode"`
	// Time when it was found.
	Time metav1.Time `json:"time"`
	// Summary is what `kubectl get -o wide` shows: the largest change of each resource.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Summary string `json:"summary,omitempty"`
	// Resources of containers that request some: those that are sized, and why others are not.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Resources []SizedResource `json:"resources,omitempty"`
	// Accelerators says how the task's accelerators were used, and what to do about it. They are never cut.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Accelerators string `json:"accelerators,omitempty"`
}

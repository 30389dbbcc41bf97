package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SizingMode chooses what Tideline does with the recorded use of a task. Disabled: nothing. Recommend: the status of its
// jobs says what they could request. Enforce: pods of new attempts request that.
//
// +kubebuilder:validation:Enum=Disabled;Recommend;Enforce
type SizingMode string

// Values of SizingMode.
const (
	SizingDisabled  SizingMode = "Disabled"
	SizingRecommend SizingMode = "Recommend"
	SizingEnforce   SizingMode = "Enforce"
)

// ProfileSizing chooses what Tideline does with the recorded use of the team's tasks.
type ProfileSizing struct {
	// Mode of jobs that choose none. Default Recommend.
	// +optional
	// +kubebuilder:default=Recommend
	Mode SizingMode `json:"mode,omitempty"`

	// Window is the time back for which use counts: whole days, from 24h to 672h (28 days). Default 336h.
	// +optional
	// +kubebuilder:default="336h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('24h') && duration(self) <= duration('672h') && duration(self).getSeconds() % 86400 == 0",message="window must be whole days, from 24h to 672h: write 168h for a week"
	Window *metav1.Duration `json:"window,omitempty"`
}

// JobSizing chooses what Tideline does with the recorded use of the job's task.
type JobSizing struct {
	// Mode of this job. Disabled keeps its requests and recommends nothing. Recommend keeps them and says what they could be.
	// Default: the mode of the namespace's profile, and Recommend without one.
	// +optional
	Mode SizingMode `json:"mode,omitempty"`
}

// Why a resource of a container was sized as it was.
const (
	// SizedByUse: less than the request, by what was used.
	SizedByUse = "Use"
	// SizedFits: the request is not more than the use requires.
	SizedFits = "Fits"
	// SizedByHistory: metrics cover less than a day, or less than 80 % of the time that the task ran. Nothing is cut.
	SizedByHistory = "InsufficientHistory"
	// SizedByMetrics: recent use is unknown, and nothing more is cut.
	SizedByMetrics = "MetricsUnavailable"
	// SizedHeld: the container ran at its limits, so its need is unknown, and nothing is cut.
	SizedHeld = "Held"
	// SizedByOOM: containers ran out of memory, and their need was not seen since. Nothing is cut, and the request may be raised.
	SizedByOOM = "OOMKilled"
	// SizedByPeak: the container used more memory than the limit of its template allows, so its request is raised.
	SizedByPeak = "PeakAboveLimit"
)

// SizedResource is what became of one request of a container.
type SizedResource struct {
	// Role of the pod: master, which is worker 0 of a job or the first pod of a merge, worker, or one of spec.roles.
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
	// Sized is what the container requests under Enforce, and what it could request under Recommend.
	Sized resource.Quantity `json:"sized"`
	// Reason in one word: Use, Fits, InsufficientHistory, MetricsUnavailable, Held, OOMKilled or
	// PeakAboveLimit.
	// +kubebuilder:validation:MaxLength=32
	Reason string `json:"reason"`
	// Message says how it came about, with the figures.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// OOMKilledTime is when a container with less memory than its template requests last ran out of memory, in this job.
	// Nothing is cut while that is within the window, unless a run with more memory has shown since how much it needs.
	// +optional
	OOMKilledTime *metav1.Time `json:"oomKilledTime,omitempty"`
}

// SizingStatus is the result of sizing when the current attempt or run started.
type SizingStatus struct {
	// Mode in effect.
	Mode SizingMode `json:"mode"`
	// Time when it was found.
	Time metav1.Time `json:"time"`
	// Summary is what `kubectl get -o wide` shows: the largest change of each resource.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Summary string `json:"summary,omitempty"`
	// Resources of containers that request some: the sized ones, and why the others are not sized.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Resources []SizedResource `json:"resources,omitempty"`
	// Accelerators says how the task's accelerators were used, and what to do about it. They are never cut.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Accelerators string `json:"accelerators,omitempty"`
}

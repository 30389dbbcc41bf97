package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MemberState says in one word what became of a member; empty for one that lives and is not stranded.
// Clients must expect further states.
//
// +kubebuilder:validation:MaxLength=16
type MemberState string

const (
	// MemberStranded: the pod lives, worker 0 was lost at status.strandedTime, and the pod's containers have not restarted since. If
	// it succeeds within five minutes, then in a training that is over: it is created anew for the next.
	MemberStranded MemberState = "Stranded"
	// MemberLost: the pod left or failed, and restarts counts it if it should. It is replaced.
	MemberLost MemberState = "Lost"
	// MemberLeft: the pod is lost, and not replaced in this attempt, because a rule of the failure policy says Ignore.
	MemberLeft MemberState = "Left"
	// MemberCompleted: the pod is lost, and not replaced in this attempt, because it succeeded.
	MemberCompleted MemberState = "Completed"
)

// Member is one worker pod that the job was known to have. The lists of members and retries have no keys: the record of who set
// which field would be as large as the lists.
type Member struct {
	// Index of the worker.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4095
	Index int32 `json:"index"`
	// UID of its pod.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Type=string
	UID types.UID `json:"uid"`
	// State is what became of the pod: Lost, Left or Completed for one that is lost, Stranded for one that lives although worker 0
	// was lost; empty for one that trains.
	// +optional
	State MemberState `json:"state,omitempty"`
	// Restarts is how often containers of the pod were seen to have restarted in place.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
}

// IsLost is true once the pod is known to have left or failed.
func (m *Member) IsLost() bool { return m.State == MemberLost || m.HasLeft() }

// HasLeft is true for a lost worker that is not replaced in this attempt.
func (m *Member) HasLeft() bool { return m.State == MemberLeft || m.HasCompleted() }

// HasCompleted is true for a worker that left because it succeeded.
func (m *Member) HasCompleted() bool { return m.State == MemberCompleted }

// IsStranded is true for a living worker that has not restarted since worker 0 was lost.
func (m *Member) IsStranded() bool { return m.State == MemberStranded }

// MaxRetries is how many back-offs of workers the status of a job keeps.
const MaxRetries = 512

// Retry is the back-off of a worker.
type Retry struct {
	// Index of the worker.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4095
	Index int32 `json:"index"`
	// Failures in a row of the worker. Reported progress, and ten minutes without a failure, reset it.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// Rejections in a row of the worker by kubelets. They do not count as failures, because the node is the cause.
	// +optional
	Rejections int32 `json:"rejections,omitempty"`
	// Time is when the worker, failed or rejected, may be created anew.
	Time metav1.Time `json:"time"`
}

// RetryOf returns the back-off of a worker, and false if it has none.
func (st *ElasticTrainingJobStatus) RetryOf(index int32) (Retry, bool) {
	at, found := slices.BinarySearchFunc(st.Retries, index, func(r Retry, i int32) int { return int(r.Index - i) })
	if !found {
		return Retry{}, false
	}
	return st.Retries[at], true
}

// DropMembers removes the chosen workers from members, retries and the last incident.
func (st *ElasticTrainingJobStatus) DropMembers(drop func(index int32) bool) {
	st.Members = slices.DeleteFunc(st.Members, func(m Member) bool { return drop(m.Index) })
	st.Retries = slices.DeleteFunc(st.Retries, func(r Retry) bool { return drop(r.Index) })
	if st.Incident != nil {
		st.Incident.Workers = slices.DeleteFunc(st.Incident.Workers, drop)
	}
	if !slices.ContainsFunc(st.Members, func(m Member) bool { return m.IsStranded() }) {
		st.StrandedTime = nil
	}
}

// HasEvicted is true for the index of surplus that gave way and waits for its cooldown. A nil status has none.
func (e *ElasticityStatus) HasEvicted(index int32) bool {
	if e == nil {
		return false
	}
	_, is := slices.BinarySearch(e.Evicted, index)
	return is
}

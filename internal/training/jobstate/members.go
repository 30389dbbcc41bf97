package jobstate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// WorkerOf reads a pod. It returns false for a pod that is not a worker of the job that controls it. The index is read from the
// pod's name, which cannot change, and not from its labels, which can.
func WorkerOf(pod *corev1.Pod) (podstate.Worker, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return podstate.Worker{}, false
	}
	_, index, ok := rendezvous.ReadName(owner.Name, pod.Name)
	if !ok {
		return podstate.Worker{}, false
	}
	w := podstate.ReadWorker(pod, index)
	w.Marks = podstate.MarksOf(pod)
	return w, true
}

// AttemptOf is the ID of the attempt that a pod was made for. A label says so, but a user can change it: a pod that the status
// records as a member is of the attempt in status, whatever its label says.
func AttemptOf(st *v1beta1.ElasticTrainingJobStatus, index int32, pod types.UID, labelled string) string {
	if st.Attempt != nil && memberOf(st.Members, index, pod) != nil {
		return st.Attempt.ID()
	}
	return labelled
}

// IsToldToLeave is true for a worker that the arbiter named to leave and that the planned status records as evicted.
func (s *State) IsToldToLeave(w *podstate.Worker) bool {
	return s.IsNamed(w) && s.IsEvicted(w.Index)
}

// IsNamed is true for a worker that the arbiter named to leave.
func (s *State) IsNamed(w *podstate.Worker) bool { return s.named[w.UID] }

// IsSurplus is true for the index of a worker beyond the core.
func (s *State) IsSurplus(i int32) bool { return i >= s.Minimum }

// IsEvicted is true for the index of a surplus worker that gave way and waits for its cooldown.
func (s *State) IsEvicted(i int32) bool {
	return s.Status.Elasticity.HasEvicted(i)
}

// InVain is true if workers left, or the job stopped, for this gang and it was not placed in time.
func (o *Observed) InVain(gang v1beta1.GangRef) bool {
	return slices.Contains(o.Verdict.InVain, gang.Key())
}

// HasLeft is true if the worker is not replaced in this attempt.
func (s *State) HasLeft(i int32) bool { return int(i) < len(s.Left) && s.Left[i] }

// HasCompleted is true if the worker has succeeded and is therefore not replaced.
func (s *State) HasCompleted(i int32) bool { return int(i) < len(s.Completed) && s.Completed[i] }

// IsOfAttempt is true for a pod of the current attempt.
func (s *State) IsOfAttempt(d podstate.Departure) bool { return d.Attempt == s.Status.Attempt.ID() }

// LivesOnRecord tells whether the status at the API server has a living member at the index.
func (o *Observed) LivesOnRecord(i int32) bool {
	m := memberAt(o.Job.Status.Members, i)
	return m != nil && !m.IsLost()
}

// RecordedMember tells whether the status at the API server has the pod as a living member.
func (o *Observed) RecordedMember(w *podstate.Worker) bool {
	m := memberOf(o.Job.Status.Members, w.Index, w.UID)
	return m != nil && !m.IsLost()
}

// RecordedLost tells whether the status at the API server, not the one being planned, knows that the pod is lost.
func (o *Observed) RecordedLost(w *podstate.Worker) bool {
	m := memberOf(o.Job.Status.Members, w.Index, w.UID)
	return m != nil && m.IsLost()
}

// IsLost tells whether the status that is planned has the pod as lost.
func (s *State) IsLost(w *podstate.Worker) bool {
	m := memberOf(s.Status.Members, w.Index, w.UID)
	return m != nil && m.IsLost()
}

// RecordedLeft tells whether the status at the API server says that the pod's worker is not replaced.
func (o *Observed) RecordedLeft(w *podstate.Worker) bool {
	m := memberOf(o.Job.Status.Members, w.Index, w.UID)
	return m != nil && m.HasLeft()
}

// ActiveWorkers lists the running workers that take part in the training. Workers that are no members, because they were placed
// when the training was over, do not delay its end.
func (s *State) ActiveWorkers() []int32 {
	var active []int32
	for w := range s.AttemptWorkers() {
		if w.Phase == corev1.PodRunning && s.RecordedMember(w) {
			active = append(active, w.Index)
		}
	}
	return active
}

// memberOf is the member of that index and UID; nil for none.
func memberOf(members []v1beta1.Member, i int32, uid types.UID) *v1beta1.Member {
	if m := memberAt(members, i); m != nil && m.UID == uid {
		return m
	}
	return nil
}

// memberAt is the member of an index; nil for none.
func memberAt(members []v1beta1.Member, i int32) *v1beta1.Member {
	if int(i) < len(members) && members[i].Index == i {
		return &members[i] // In most jobs no member is missing, and they are in order.
	}
	if at, known := slices.BinarySearchFunc(members, i, CompareIndex); known {
		return &members[at]
	}
	return nil
}

// CompareIndex orders members by their index.
func CompareIndex(m v1beta1.Member, i int32) int { return int(m.Index - i) }

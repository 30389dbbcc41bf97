// Package elastic decides what becomes of an ElasticTrainingJob. Plan is its heart: a pure function from what was observed
// to what must be done and said.
package elastic

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/config"
	"github.com/tideline-io/tideline/internal/gang"
	"github.com/tideline-io/tideline/internal/rendezvous"
)

// Observed is all that Plan knows of a job.
type Observed struct {
	Job   *v1alpha1.ElasticTrainingJob
	Tiers config.Tiers
	// Invalid is what admission would have said against the spec; empty when it keeps its rules.
	Invalid string
	// VolcanoMissing names the Volcano kinds that the API server does not serve; empty when it serves all.
	VolcanoMissing string
	Queue          Queue
	// Core and Surplus are the job's PodGroups; nil when they do not exist.
	Core, Surplus *gang.State
	// Service is the UID of the job's headless Service; empty when it does not exist.
	Service types.UID
	// Workers are the job's pods, in any order.
	Workers []Worker
	// Verdict is what the arbiter says of the job.
	Verdict capacity.Verdict
	// SchedulerObstacles lists what in Volcano's configuration keeps surplus from giving way by itself.
	SchedulerObstacles []string
	// Departures are pods that were seen to leave since the status last recorded losses.
	Departures []Departure
}

// Queue is the Volcano Queue that the job's gang joined, or would join.
type Queue struct {
	Name string
	// State is Volcano's word for the queue's state: "Open", "Closed", …; empty while Volcano has not seen it.
	State string
	// Missing is true when there is no Queue of that name.
	Missing bool
}

// Worker is one pod of the job.
type Worker struct {
	Index int32
	UID   types.UID
	// Attempt is the ID of the attempt that the pod was made for.
	Attempt string
	Phase   corev1.PodPhase
	// Scheduled is true once the pod is bound to a node.
	Scheduled bool
	Ready     bool
	// Terminating is true once deletion was requested.
	Terminating bool
	// Disruption is the reason of the pod's condition DisruptionTarget: evicted, preempted, drained, or its node lost; empty for a
	// pod without it.
	Disruption string
	// Reason and Message say why a failed pod failed.
	Reason, Message string
}

// Departure is a pod that is gone, as it was last seen.
type Departure struct {
	Index      int32
	UID        types.UID
	Attempt    string
	Disruption string
	// Succeeded is true when the pod was seen to have succeeded before anybody asked it to leave.
	Succeeded bool
}

// WorkerOf reads a pod. It returns false for a pod that is no worker of the job that controls it. The index is read from the
// name, which nobody can change.
func WorkerOf(pod *corev1.Pod) (Worker, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return Worker{}, false
	}
	index, ok := rendezvous.WorkerIndex(owner.Name, pod.Name)
	if !ok {
		return Worker{}, false
	}
	w := Worker{
		Index:       index,
		UID:         pod.UID,
		Attempt:     pod.Labels[v1alpha1.LabelAttempt],
		Phase:       pod.Status.Phase,
		Scheduled:   pod.Spec.NodeName != "",
		Terminating: pod.DeletionTimestamp != nil,
	}
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type { //nolint:exhaustive // of all conditions of pods, these two matter
		case corev1.PodReady:
			w.Ready = true
		case corev1.DisruptionTarget:
			w.Disruption = cmp.Or(c.Reason, string(corev1.DisruptionTarget))
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		w.Reason, w.Message = failure(pod)
	}
	return w, true
}

// failure prefers what the first failed container said to what the pod as a whole says.
func failure(pod *corev1.Pod) (reason, message string) {
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return "exit code " + strconv.Itoa(int(t.ExitCode)), t.Message
		}
	}
	return pod.Status.Reason, pod.Status.Message
}

// Departed is how a worker that is gone is remembered; succeeded, that it was seen to have succeeded of its own will.
func (w Worker) Departed(succeeded bool) Departure {
	return Departure{Index: w.Index, UID: w.UID, Attempt: w.Attempt, Disruption: w.Disruption, Succeeded: succeeded}
}

// Succeeded is true for a worker that ended well of its own will. A kubelet lets every pod that was asked to leave end as
// Succeeded or Failed, by how its containers took it; that says nothing about the training.
func (w Worker) Succeeded() bool {
	return w.Phase == corev1.PodSucceeded && !w.Terminating && w.Disruption == ""
}

// failed is true for a worker that ended badly by itself.
func (w Worker) failed() bool {
	return w.Phase == corev1.PodFailed && !w.Terminating && w.Disruption == ""
}

// ended is true once the pod will not run again by itself.
func (w Worker) ended() bool { return w.Phase == corev1.PodSucceeded || w.Phase == corev1.PodFailed }

// running is true while the pod's containers run or restart in place.
func (w Worker) running() bool { return w.Phase == corev1.PodRunning && !w.Terminating }

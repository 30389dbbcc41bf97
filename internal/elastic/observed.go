// Package elastic decides what becomes of an ElasticTrainingJob. Plan is its heart: a pure function from what was observed
// to what must be done and said.
package elastic

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/config"
	"github.com/tideline-io/tideline/internal/gang"
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
	// Departures are pods that were seen to leave since the status last recorded losses.
	Departures []Departure
}

// Queue is the Volcano Queue that a new gang of the job would join.
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
	// Disrupted is true when the pod carries condition DisruptionTarget: evicted, preempted, drained, or its node lost.
	Disrupted bool
	// Reason and Message say why a failed pod failed.
	Reason, Message string
}

// Departure is a pod that is gone, as it was last seen.
type Departure struct {
	Index     int32
	UID       types.UID
	Phase     corev1.PodPhase
	Disrupted bool
}

// WorkerOf reads a pod. It returns false for a pod without a worker's labels.
func WorkerOf(pod *corev1.Pod) (Worker, bool) {
	index, err := strconv.ParseInt(pod.Labels[v1alpha1.LabelWorkerIndex], 10, 32)
	if err != nil || index < 0 {
		return Worker{}, false
	}
	w := Worker{
		Index:       int32(index),
		UID:         pod.UID,
		Attempt:     pod.Labels[v1alpha1.LabelAttempt],
		Phase:       pod.Status.Phase,
		Scheduled:   pod.Spec.NodeName != "",
		Terminating: pod.DeletionTimestamp != nil,
		Ready:       hasCondition(pod, corev1.PodReady),
		Disrupted:   hasCondition(pod, corev1.DisruptionTarget),
	}
	if pod.Status.Phase == corev1.PodFailed {
		w.Reason, w.Message = failure(pod)
	}
	return w, true
}

func hasCondition(pod *corev1.Pod, t corev1.PodConditionType) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
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

// Departed is how a worker that is gone is remembered.
func (w Worker) Departed() Departure {
	return Departure{Index: w.Index, UID: w.UID, Phase: w.Phase, Disrupted: w.Disrupted}
}

// ended is true once the pod will not run again by itself.
func (w Worker) ended() bool { return w.Phase == corev1.PodSucceeded || w.Phase == corev1.PodFailed }

// running is true while the pod's containers run or restart in place.
func (w Worker) running() bool { return w.Phase == corev1.PodRunning && !w.Terminating }

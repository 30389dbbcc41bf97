// Package podstate reads from a pod what planners decide by: its state, how it failed, and whether its node is to blame.
package podstate

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Worker is one pod of the job.
type Worker struct {
	Index int32
	// Name of the pod.
	Name string
	// Misnamed is true for a pod whose name has another role than the worker of its index has now.
	Misnamed bool
	UID      types.UID
	// Attempt is the ID of the attempt that the pod was made for.
	Attempt string
	Phase   corev1.PodPhase
	// Scheduled is true once the pod is bound to a node.
	Scheduled bool
	// Node is the node that the pod is bound to; empty before.
	Node string
	// Avoids are nodes that a pod without a node excludes by name.
	Avoids []string
	Ready  bool
	// ReadyTime is since when the pod is ready; zero for one that is not.
	ReadyTime metav1.Time
	// BoundTime is when the pod was given its node; zero for one without.
	BoundTime metav1.Time
	// Gates are the scheduling gates that keep every scheduler from placing the pod.
	Gates []string
	// Terminating is true once deletion was requested.
	Terminating bool
	// GraceSeconds is how long the pod may take to terminate.
	GraceSeconds int64
	// Disruption is the reason of the pod's condition DisruptionTarget: evicted, preempted, drained, or its node lost; empty for a
	// pod without it.
	Disruption string
	// Conditions are the types of the pod's conditions that are True.
	Conditions []string
	// Rejected is true for a pod that failed because of its node.
	Rejected bool
	// Failure says why a failed pod failed, or why containers of a pod that lives last restarted in place.
	Failure Failure
	// ContainerRestarts is how often containers of the pod restarted in place.
	ContainerRestarts int32
	// FinishedAt is when the last of its containers ended; zero while one runs.
	FinishedAt metav1.Time
	// Waiting is why a container does not start: its reason, and what the kubelet says of it.
	Waiting, WaitingMessage string
	// StepDomain is the node or HyperNode that the worker's step is within; empty for none.
	StepDomain string
	// Marks are the labels and annotations by which the pod is known; zero for a pod of a merge.
	Marks Marks
	// Progress is what the training reported in annotation tideline.io/progress.
	Progress int64
	// CheckpointRequested and CheckpointDone are the numbers of the annotations of these names; 0 for none.
	CheckpointRequested, CheckpointDone int64
}

// Departure is a pod that is gone, as it was last seen.
type Departure struct {
	Index      int32
	UID        types.UID
	Attempt    string
	Disruption string
	Conditions []string
	Failure    Failure
	Progress   int64
	// Succeeded is true if the pod was seen to have succeeded before it was asked to leave. Failed is true if it failed, and
	// Rejected if that was because of its node.
	Succeeded, Failed, Rejected bool
	Node                        string
}

// CheckpointDone is the number of the annotation of that name; 0 for none.
func CheckpointDone(pod *corev1.Pod) int64 { return numberIn(pod, v1beta1.AnnotationCheckpointDone) }

// numberIn is the number in an annotation; 0 for none.
func numberIn(pod *corev1.Pod, annotation string) int64 {
	word, there := pod.Annotations[annotation]
	if !there {
		return 0
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// ReadWorker reads a pod that is known to be the worker of that index.
func ReadWorker(pod *corev1.Pod, index int32) Worker {
	w := Worker{
		Index:        index,
		Name:         pod.Name,
		UID:          pod.UID,
		Attempt:      pod.Labels[v1beta1.LabelAttempt],
		Phase:        pod.Status.Phase,
		Scheduled:    pod.Spec.NodeName != "",
		Node:         pod.Spec.NodeName,
		Avoids:       AvoidedBy(&pod.Spec),
		Rejected:     rejectedByNode(pod),
		Terminating:  pod.DeletionTimestamp != nil,
		GraceSeconds: ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds),
		Failure:      failureOf(pod),
	}
	if w.Scheduled {
		w.BoundTime = BoundTime(pod)
	}
	for _, gate := range pod.Spec.SchedulingGates {
		w.Gates = append(w.Gates, gate.Name)
	}
	w.StepDomain = pod.Annotations[v1beta1.AnnotationStepDomain]
	w.Progress = numberIn(pod, v1beta1.AnnotationProgress)
	w.CheckpointRequested = numberIn(pod, v1beta1.AnnotationCheckpointRequested)
	w.CheckpointDone = CheckpointDone(pod)
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		w.Conditions = append(w.Conditions, string(c.Type))
		switch c.Type { //nolint:exhaustive // of all conditions of pods, these two matter
		case corev1.PodReady:
			w.Ready, w.ReadyTime = true, c.LastTransitionTime
		case corev1.DisruptionTarget:
			w.Disruption = cmp.Or(c.Reason, string(corev1.DisruptionTarget))
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.State.Waiting != nil && w.Waiting == "" {
			w.Waiting, w.WaitingMessage = c.State.Waiting.Reason, c.State.Waiting.Message
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		w.ContainerRestarts += c.RestartCount
		if t := c.State.Terminated; t != nil && w.HasEnded() && t.FinishedAt.After(w.FinishedAt.Time) {
			w.FinishedAt = t.FinishedAt
		}
	}
	return w
}

// BoundTime is when the scheduler gave the pod its node; its creation if no condition says so.
func BoundTime(pod *corev1.Pod) metav1.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime
		}
	}
	return pod.CreationTimestamp
}

// PlansAlike is true if two states of a worker need no new plan. Progress does not count, because a training may report every
// step; it is read when something else happens.
func (w Worker) PlansAlike(o Worker) bool {
	w.Progress, o.Progress = 0, 0
	return reflect.DeepEqual(w, o)
}

// AsDeparture is what to remember of a worker that is gone. succeeded is true if it succeeded before it was asked to leave.
func (w Worker) AsDeparture(succeeded bool) Departure {
	return Departure{
		Index: w.Index, UID: w.UID, Attempt: w.Attempt, Disruption: w.Disruption, Conditions: w.Conditions, Failure: w.Failure,
		Progress: w.Progress, Succeeded: succeeded, Failed: w.Phase == corev1.PodFailed && w.Disruption == "",
		Rejected: w.Rejected && w.Disruption == "", Node: w.Node,
	}
}

// HasSucceeded is true for a worker that succeeded and was not asked to leave. A kubelet reports every pod that was asked to
// leave as Succeeded or Failed, by how its containers took the signal; that says nothing about the training.
func (w Worker) HasSucceeded() bool {
	return w.Phase == corev1.PodSucceeded && !w.Terminating && w.Disruption == ""
}

// HasFailed is true for a worker that failed and was not asked to leave.
func (w Worker) HasFailed() bool {
	return w.Phase == corev1.PodFailed && !w.Terminating && w.Disruption == ""
}

// HasEnded is true once the pod will not run again by itself.
func (w Worker) HasEnded() bool { return w.Phase == corev1.PodSucceeded || w.Phase == corev1.PodFailed }

// IsRunning is true while the pod's containers run or restart in place.
func (w Worker) IsRunning() bool { return w.Phase == corev1.PodRunning && !w.Terminating }

// CannotStart is true while a container waits for an image or a configuration that a person must correct.
func (w Worker) CannotStart() bool { return w.StartError() != "" }

// StartError is the condition reason for a worker that cannot start; empty for any other.
func (w Worker) StartError() string { return startErrors[w.Waiting] }

// startErrors maps the reasons for which a kubelet does not start a container to condition reasons
// (k8s.io/kubernetes/pkg/kubelet/images/types.go and pkg/kubelet/kuberuntime/kuberuntime_container.go).
var startErrors = map[string]string{
	"ErrImagePull":               v1beta1.ReasonImagePullFailed,
	"ImagePullBackOff":           v1beta1.ReasonImagePullFailed,
	"ErrImageNeverPull":          v1beta1.ReasonImagePullFailed,
	"InvalidImageName":           v1beta1.ReasonImagePullFailed,
	"RegistryUnavailable":        v1beta1.ReasonImagePullFailed,
	"CreateContainerConfigError": v1beta1.ReasonContainerConfigError,
	"CreateContainerError":       v1beta1.ReasonContainerConfigError,
	"RunContainerError":          v1beta1.ReasonContainerConfigError,
	"PreCreateHookError":         v1beta1.ReasonContainerConfigError,
	"PostStartHookError":         v1beta1.ReasonContainerConfigError,
}

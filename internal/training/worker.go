package training

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// Worker is one pod of the job.
type Worker struct {
	Index int32
	UID   types.UID
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
	// Gates are the scheduling gates that keep every scheduler from placing the pod.
	Gates []string
	// Terminating is true once deletion was requested.
	Terminating bool
	// GraceSeconds is how long the pod may take to end once it is told to.
	GraceSeconds int64
	// Disruption is the reason of the pod's condition DisruptionTarget: evicted, preempted, drained, or its node lost; empty for a
	// pod without it.
	Disruption string
	// Conditions are the types of the pod's conditions that are True.
	Conditions []string
	// Rejected is true for a pod that failed for its node.
	Rejected bool
	// Failure says why a failed pod failed, or why containers of a pod that lives last restarted in place.
	Failure Failure
	// ContainerRestarts is how often containers of the pod restarted in place.
	ContainerRestarts int32
	// FinishedAt is when the last of its containers ended; zero while one runs.
	FinishedAt metav1.Time
	// Waiting is why a container does not start: its reason, and what the kubelet says of it.
	Waiting, WaitingMessage string
	// Progress is what the training reported in annotation tideline.io/progress.
	Progress int64
	// CheckpointRequested and CheckpointDone are the numbers of the annotations of these names; 0 for none.
	CheckpointRequested, CheckpointDone int64
}

// Failure is how a container ended, or the pod as a whole where no container tells.
type Failure struct {
	// ExitCode is 0 when none is known.
	ExitCode int32
	// Reason is a word of Kubernetes such as Error, OOMKilled or Evicted; it may be empty.
	Reason string
	// Message is what the container said last.
	Message string
	// Container by name; empty where the pod as a whole tells.
	Container string
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
	// Succeeded is true when the pod was seen to have succeeded before anybody asked it to leave, Failed when it failed, and
	// Rejected when it did for its node.
	Succeeded, Failed, Rejected bool
	Node                        string
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
	return ReadWorker(pod, index), true
}

// ReadWorker reads a pod that is known to be the worker of that index.
func ReadWorker(pod *corev1.Pod, index int32) Worker {
	w := Worker{
		Index:        index,
		UID:          pod.UID,
		Attempt:      pod.Labels[v1alpha1.LabelAttempt],
		Phase:        pod.Status.Phase,
		Scheduled:    pod.Spec.NodeName != "",
		Node:         pod.Spec.NodeName,
		Avoids:       trainingpod.AvoidedBy(&pod.Spec),
		Rejected:     rejectedByNode(pod),
		Terminating:  pod.DeletionTimestamp != nil,
		GraceSeconds: ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds),
		Failure:      failure(pod),
	}
	for _, gate := range pod.Spec.SchedulingGates {
		w.Gates = append(w.Gates, gate.Name)
	}
	for key, to := range map[string]*int64{
		v1alpha1.AnnotationProgress:            &w.Progress,
		v1alpha1.AnnotationCheckpointRequested: &w.CheckpointRequested,
		v1alpha1.AnnotationCheckpointDone:      &w.CheckpointDone,
	} {
		if n, err := strconv.ParseInt(pod.Annotations[key], 10, 64); err == nil {
			*to = n
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		w.Conditions = append(w.Conditions, string(c.Type))
		switch c.Type { //nolint:exhaustive // of all conditions of pods, these two matter
		case corev1.PodReady:
			w.Ready = true
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
		if t := c.State.Terminated; t != nil && w.Ended() && t.FinishedAt.After(w.FinishedAt.Time) {
			w.FinishedAt = t.FinishedAt
		}
	}
	return w
}

// failure prefers what the container said that failed last, the training container among equals, to what the pod as a
// whole says.
func failure(pod *corev1.Pod) Failure {
	var last *corev1.ContainerStateTerminated
	container := ""
	all := slices.Clone(pod.Status.ContainerStatuses)
	slices.SortStableFunc(all, func(a, b corev1.ContainerStatus) int {
		return cmp.Compare(order(a.Name != rendezvous.TrainerContainer), order(b.Name != rendezvous.TrainerContainer))
	})
	for _, c := range all {
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil && t.ExitCode != 0 && (last == nil || t.FinishedAt.After(last.FinishedAt.Time)) {
				last, container = t, c.Name
			}
		}
	}
	if last != nil {
		return Failure{ExitCode: last.ExitCode, Reason: last.Reason, Message: last.Message, Container: container}
	}
	return Failure{Reason: pod.Status.Reason, Message: pod.Status.Message}
}

// Alike tells whether two sightings of a worker give no reason to plan anew. Progress is read when something else happens: a
// training may report every step.
func (w Worker) Alike(o Worker) bool {
	w.Progress, o.Progress = 0, 0
	return reflect.DeepEqual(w, o)
}

// Departed is how a worker that is gone is remembered; succeeded, that it was seen to have succeeded of its own will.
func (w Worker) Departed(succeeded bool) Departure {
	return Departure{
		Index: w.Index, UID: w.UID, Attempt: w.Attempt, Disruption: w.Disruption, Conditions: w.Conditions, Failure: w.Failure,
		Progress: w.Progress, Succeeded: succeeded, Failed: w.Phase == corev1.PodFailed && w.Disruption == "",
		Rejected: w.Rejected && w.Disruption == "", Node: w.Node,
	}
}

// Succeeded is true for a worker that ended well of its own will. A kubelet lets every pod that was asked to leave end as
// Succeeded or Failed, by how its containers took it; that says nothing about the training.
func (w Worker) Succeeded() bool {
	return w.Phase == corev1.PodSucceeded && !w.Terminating && w.Disruption == ""
}

// Failed is true for a worker that ended badly by itself.
func (w Worker) Failed() bool {
	return w.Phase == corev1.PodFailed && !w.Terminating && w.Disruption == ""
}

// Ended is true once the pod will not run again by itself.
func (w Worker) Ended() bool { return w.Phase == corev1.PodSucceeded || w.Phase == corev1.PodFailed }

// running is true while the pod's containers run or restart in place.
func (w Worker) running() bool { return w.Phase == corev1.PodRunning && !w.Terminating }

// cannotStart is true while a container waits for something that waiting alone does not mend: its image, or its configuration.
func (w Worker) cannotStart() bool { return startErrors[w.Waiting] != "" }

// startErrors are the reasons for which a kubelet does not start a container, and our reason for each
// (k8s.io/kubernetes/pkg/kubelet/images/types.go and pkg/kubelet/kuberuntime/kuberuntime_container.go).
var startErrors = map[string]string{
	"ErrImagePull":               v1alpha1.ReasonImagePullFailed,
	"ImagePullBackOff":           v1alpha1.ReasonImagePullFailed,
	"ErrImageNeverPull":          v1alpha1.ReasonImagePullFailed,
	"InvalidImageName":           v1alpha1.ReasonImagePullFailed,
	"RegistryUnavailable":        v1alpha1.ReasonImagePullFailed,
	"CreateContainerConfigError": v1alpha1.ReasonContainerConfigError,
	"CreateContainerError":       v1alpha1.ReasonContainerConfigError,
	"RunContainerError":          v1alpha1.ReasonContainerConfigError,
	"PreCreateHookError":         v1alpha1.ReasonContainerConfigError,
	"PostStartHookError":         v1alpha1.ReasonContainerConfigError,
}

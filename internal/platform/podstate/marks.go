package podstate

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// Marks are the labels and annotations of a worker pod by which Tideline, its Service and Volcano know it. Users can change them.
// An empty one stands for one that is missing.
type Marks struct {
	// Labels.
	Job, Index, Attempt, Part, Role, Task, OwnerHash string
	// Annotations: the owner of the job, and the PodGroup of the pod.
	Owner, Group string
}

// MarksOf reads the marks of a pod.
func MarksOf(pod *corev1.Pod) Marks {
	return Marks{
		Job: pod.Labels[v1beta1.LabelJob], Index: pod.Labels[v1beta1.LabelWorkerIndex],
		Attempt: pod.Labels[v1beta1.LabelAttempt], Part: pod.Labels[v1beta1.LabelPart], Role: pod.Labels[v1beta1.LabelRole],
		Task:      pod.Labels[v1beta1.LabelTask],
		OwnerHash: pod.Labels[v1beta1.LabelOwnerHash],
		Owner:     pod.Annotations[v1beta1.AnnotationOwner], Group: gang.GroupOf(pod),
	}
}

// Mark is one of the marks that is not as it should be.
type Mark struct {
	Key string
	// Annotation is true for an annotation, and false for a label.
	Annotation bool
	// Have is what it is, and Want what it should be; empty for none.
	Have, Want string
}

// Differences are the marks that a pod has otherwise than wanted; nil for none.
func (m Marks) Differences(have Marks) []Mark {
	if m == have {
		return nil
	}
	var all []Mark
	for _, one := range []Mark{
		{v1beta1.LabelJob, false, have.Job, m.Job},
		{v1beta1.LabelWorkerIndex, false, have.Index, m.Index},
		{v1beta1.LabelAttempt, false, have.Attempt, m.Attempt},
		{v1beta1.LabelPart, false, have.Part, m.Part},
		{v1beta1.LabelRole, false, have.Role, m.Role},
		{v1beta1.LabelTask, false, have.Task, m.Task},
		{v1beta1.LabelOwnerHash, false, have.OwnerHash, m.OwnerHash},
		{v1beta1.AnnotationOwner, true, have.Owner, m.Owner},
		{gang.GroupAnnotation, true, have.Group, m.Group},
	} {
		if one.Have != one.Want {
			all = append(all, one)
		}
	}
	return all
}

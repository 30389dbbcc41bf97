// Package gang writes and reads what Tideline and Volcano share: PodGroups, Queues and annotations of pods. No other package
// knows Volcano's types and annotations. Facts about Volcano are from its source, v1.14.1.
package gang

import (
	"errors"
	"reflect"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "volcano.sh/apis/pkg/apis/topology/v1alpha1"
)

const (
	// SchedulerName is the scheduler of every worker pod.
	SchedulerName = "volcano"
	// DefaultQueue is the Queue that Volcano registers at its first start.
	DefaultQueue = schedulingv1beta1.DefaultQueue
	// QueueAnnotation is Volcano's own annotation by which a namespace names its Queue.
	QueueAnnotation = schedulingv1beta1.QueueNameAnnotationKey

	// GroupAnnotation is Volcano's own annotation by which a pod names its PodGroup.
	GroupAnnotation = schedulingv1beta1.KubeGroupNameAnnotationKey

	// taskPriority orders the tasks of a group for placement, reversed for eviction (scheduler/api/job_info.go).
	taskPriority = "volcano.sh/task-priority"
	// lastCheckpoint is when the training of a group last saved, in RFC 3339, for plugins that choose victims. The key is that of
	// Volcano's pull request 5999, which no release has.
	lastCheckpoint = "volcano.sh/last-checkpoint-time"
	// highestTaskPriority is worker 0's; later workers count down from it and stay positive.
	highestTaskPriority = 1 << 16
)

// PodGroupKind and QueueKind are the Volcano kinds that the operator needs.
var (
	PodGroupKind = schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")
	QueueKind    = schedulingv1beta1.SchemeGroupVersion.WithKind("Queue")
)

// VolcanoKinds are the Volcano kinds that the operator cannot work without.
func VolcanoKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{PodGroupKind, QueueKind}
}

// AddToScheme registers Volcano's kinds for scheduling and topology.
func AddToScheme(s *runtime.Scheme) error {
	return errors.Join(schedulingv1beta1.AddToScheme(s), topologyv1alpha1.AddToScheme(s))
}

// NewPodGroup returns an empty PodGroup to read into.
func NewPodGroup() client.Object { return &schedulingv1beta1.PodGroup{} }

// NewQueue returns an empty Queue to read into.
func NewQueue() client.Object { return &schedulingv1beta1.Queue{} }

// CoreName is the name of the PodGroup of a job's core.
func CoreName(job string) string { return job }

// SurplusName is the name of the PodGroup of a job's surplus.
func SurplusName(job string) string { return job + "-surplus" }

// Group is a gang as Tideline wants it.
type Group struct {
	Namespace, Name string
	Labels          map[string]string
	Owner           metav1.OwnerReference
	Queue           string
	PriorityClass   string
	// MinMember is how many members Volcano places together or not at all; 0 for surplus.
	MinMember int32
	// MinResources is what those members ask for together; nil for surplus.
	MinResources corev1.ResourceList
	// LastCheckpoint is when the training last saved a checkpoint; zero if that is not known.
	LastCheckpoint time.Time
	// Closeness is how close the members must be to each other; nil if that does not matter.
	Closeness *Closeness
}

// PodGroup returns the group as an object to create.
func (g Group) PodGroup() client.Object {
	pg := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: g.Name, Labels: g.Labels, OwnerReferences: []metav1.OwnerReference{g.Owner},
			Annotations: g.annotations(),
		},
		Spec: schedulingv1beta1.PodGroupSpec{MinMember: g.MinMember, Queue: g.Queue, PriorityClassName: g.PriorityClass},
	}
	if g.MinResources != nil {
		pg.Spec.MinResources = &g.MinResources
	}
	pg.Spec.NetworkTopology = g.Closeness.networkTopology()
	return pg
}

func (g Group) annotations() map[string]string {
	if g.LastCheckpoint.IsZero() {
		return nil
	}
	return map[string]string{lastCheckpoint: g.LastCheckpoint.UTC().Format(time.RFC3339)}
}

// Restore is a PodGroup whose fields somebody changed, to be patched back.
type Restore struct {
	Group Group
	UID   types.UID
}

// Ref names a PodGroup to delete.
type Ref struct {
	Name string
	UID  types.UID
}

// State is what Tideline reads of a PodGroup. It holds no phase: a surplus group with nothing placed shows Completed while
// its pods are placed all the same.
type State struct {
	UID   types.UID
	Queue string
	// Unschedulable is the message of Volcano's condition Unschedulable while it is True, else empty.
	Unschedulable string
	minMember     int32
	minResources  corev1.ResourceList
	priorityClass string
	// lastCheckpoint is zero for a group without the annotation, or with one that is no time.
	lastCheckpoint time.Time
	topology       *schedulingv1beta1.NetworkTopologySpec
}

// MinMember is how many members are placed all together or not at all.
func (s State) MinMember() int32 { return s.minMember }

// StateOf reads a PodGroup.
func StateOf(o client.Object) State {
	pg, ok := o.(*schedulingv1beta1.PodGroup)
	if !ok {
		return State{}
	}
	s := State{
		UID: pg.UID, Queue: pg.Spec.Queue, Unschedulable: unschedulable(pg),
		minMember: pg.Spec.MinMember, priorityClass: pg.Spec.PriorityClassName, topology: pg.Spec.NetworkTopology,
	}
	if pg.Spec.MinResources != nil {
		s.minResources = *pg.Spec.MinResources
	}
	if saved, err := time.Parse(time.RFC3339, pg.Annotations[lastCheckpoint]); err == nil {
		s.lastCheckpoint = saved
	}
	return s
}

// unschedulable returns the message of the condition Unschedulable unless a later Scheduled supersedes it: Volcano appends
// both and never removes one.
func unschedulable(pg *schedulingv1beta1.PodGroup) string {
	var message string
	var since metav1.Time
	for _, c := range pg.Status.Conditions {
		if c.Type == schedulingv1beta1.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
			message, since = c.Message, c.LastTransitionTime
		}
	}
	for _, c := range pg.Status.Conditions {
		if c.Type == schedulingv1beta1.PodGroupScheduled && c.Status == corev1.ConditionTrue &&
			!c.LastTransitionTime.Before(&since) {
			return ""
		}
	}
	return message
}

// HasDrifted is true if somebody changed the fields of the group that Tideline owns. The queue is not compared: Volcano's webhook
// may rewrite it at creation, and a group keeps its queue. Fields that others added do not count.
func (g Group) HasDrifted(s State) bool {
	if g.MinMember != s.minMember || g.PriorityClass != s.priorityClass || g.hasSavedSince(s) {
		return true
	}
	if want := g.Closeness.networkTopology(); want != nil && !reflect.DeepEqual(want, s.topology) {
		return true
	}
	for name, want := range g.MinResources {
		// As it comes back from the API server: a quantity may change a little when it is written.
		stored, err := resource.ParseQuantity(want.String())
		have, ok := s.minResources[name]
		if err == nil && (!ok || have.Cmp(stored) != 0) {
			return true
		}
	}
	return false
}

// checkpointPace is how often the time of a checkpoint is written at most: a training may save every few seconds.
const checkpointPace = time.Minute

// hasSavedSince is true if the training saved in another minute than that of the checkpoint that the PodGroup tells of. So of
// each minute one checkpoint is written, whenever it is looked at.
func (g Group) hasSavedSince(s State) bool {
	known, told := g.LastCheckpoint.Truncate(checkpointPace), s.lastCheckpoint.Truncate(checkpointPace)
	return !g.LastCheckpoint.IsZero() && !known.Equal(told)
}

// WithCheckpoint is the group with the time of the last checkpoint; with what the PodGroup says of that if none is known now. The
// new worker 0 of a training that has lost its old one knows of none, and what is left out of a patch would be removed.
func (g Group) WithCheckpoint(saved time.Time, s *State) Group {
	if g.LastCheckpoint = saved; saved.IsZero() && s != nil {
		g.LastCheckpoint = s.lastCheckpoint
	}
	return g
}

// RestorePatch returns what to apply to a drifted PodGroup of that UID: only the fields Tideline owns, and nothing of status,
// which the scheduler writes as part of the whole object.
func (g Group) RestorePatch(uid types.UID) (map[string]any, error) {
	spec := map[string]any{"minMember": int64(g.MinMember), "priorityClassName": g.PriorityClass}
	if g.MinResources != nil {
		resources, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
			MinResources corev1.ResourceList `json:"minResources"`
		}{g.MinResources})
		if err != nil {
			return nil, err
		}
		spec["minResources"] = resources["minResources"]
	}
	if t := g.Closeness.networkTopology(); t != nil {
		written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
		if err != nil {
			return nil, err
		}
		spec["networkTopology"] = written
	}
	metadata := map[string]any{"namespace": g.Namespace, "name": g.Name, "uid": string(uid)}
	for key, value := range g.annotations() {
		metadata["annotations"] = map[string]any{key: value} // There is one.
	}
	return map[string]any{
		"apiVersion": PodGroupKind.GroupVersion().String(),
		"kind":       PodGroupKind.Kind,
		"metadata":   metadata,
		"spec":       spec,
	}, nil
}

// Member says how a pod takes part in its gang.
type Member struct {
	Group string
	// Role of the worker, which Volcano calls its task; empty for master and worker, as the index says.
	Role string
	// Index of the worker: 0 is placed first and evicted last.
	Index int32
	// PriorityClass of the pod.
	PriorityClass string
	// Preemptable pods give way to waiting gangs.
	Preemptable bool
	// MinRun is for how long Volcano does not evict a preemptable pod after placing it, in whole seconds; 0 for no protection.
	MinRun time.Duration
}

// JoinGang makes the pod a member. It must happen at creation: Volcano reads these keys when it first sees the pod.
func (m Member) JoinGang(pod *corev1.Pod) {
	pod.Spec.SchedulerName = SchedulerName
	pod.Spec.PriorityClassName = m.PriorityClass
	task := m.Role
	switch {
	case task != "":
	case m.Index == 0:
		task = "master"
	default:
		task = "worker"
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] = m.Group
	pod.Annotations[batchv1alpha1.TaskSpecKey] = task
	pod.Annotations[taskPriority] = strconv.Itoa(highestTaskPriority - int(m.Index))
	pod.Annotations[schedulingv1beta1.PodPreemptable] = strconv.FormatBool(m.Preemptable)
	if m.Preemptable && m.MinRun > 0 {
		pod.Annotations[schedulingv1beta1.CooldownTime] = strconv.Itoa(int(m.MinRun.Seconds())) + "s"
	}
}

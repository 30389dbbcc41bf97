package gang

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// QueueState is the state of a Queue, or empty as long as Volcano's controller has not seen it.
func QueueState(o client.Object) string {
	q, ok := o.(*schedulingv1beta1.Queue)
	if !ok {
		return ""
	}
	return string(q.Status.State)
}

// QueueOpen is the state in which a Queue accepts gangs.
const QueueOpen = string(schedulingv1beta1.QueueStateOpen)

// NewPool returns a Queue for merges as an object to create. It is not reclaimable: Volcano's plugin capacity would let other
// queues reclaim from it at any time, because it has no share (deserved).
func NewPool(name string) client.Object {
	return &schedulingv1beta1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.QueueSpec{Weight: 1, Reclaimable: ptr.To(false)},
	}
}

// PoolManifest is the YAML of [NewPool].
func PoolManifest(name string) string {
	return "---\napiVersion: " + QueueKind.GroupVersion().String() + "\nkind: " + QueueKind.Kind +
		"\nmetadata:\n  name: " + name + "\nspec:\n  reclaimable: false\n  weight: 1\n"
}

// QueueChanged passes changes of a Queue's state, and not of the figures that Volcano updates all the time.
func QueueChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return QueueState(e.ObjectOld) != QueueState(e.ObjectNew)
	}}
}

// QueueLimitsChanged passes changes of a Queue's state and limits.
func QueueLimitsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !reflect.DeepEqual(QueueLimitsOf(e.ObjectOld), QueueLimitsOf(e.ObjectNew))
	}}
}

// PodGroupChanged passes changes that a job's reconciler reads of a PodGroup, and not of the counts that Volcano updates all
// the time.
func PodGroupChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		// The generation is no use: PodGroups have no status subresource, so it counts status writes too.
		return !reflect.DeepEqual(StateOf(e.ObjectOld), StateOf(e.ObjectNew)) ||
			(e.ObjectNew.GetDeletionTimestamp() != nil) != (e.ObjectOld.GetDeletionTimestamp() != nil)
	}}
}

// NewPodGroupList returns an empty list of PodGroups to read into.
func NewPodGroupList() client.ObjectList { return &schedulingv1beta1.PodGroupList{} }

// NewQueueList returns an empty list of Queues to read into.
func NewQueueList() client.ObjectList { return &schedulingv1beta1.QueueList{} }

// QueueLimits are the state of a Queue and its bounds by resource.
type QueueLimits struct {
	Name                            string
	State                           string
	Guarantee, Deserved, Capability corev1.ResourceList
	// Reclaimable is false for a queue whose pods do not leave for other queues.
	Reclaimable bool
}

// QueueLimitsOf reads a Queue.
func QueueLimitsOf(o client.Object) QueueLimits {
	q, ok := o.(*schedulingv1beta1.Queue)
	if !ok {
		return QueueLimits{}
	}
	return QueueLimits{
		Name: q.Name, State: string(q.Status.State),
		Guarantee: q.Spec.Guarantee.Resource, Deserved: q.Spec.Deserved, Capability: q.Spec.Capability,
		Reclaimable: q.Spec.Reclaimable == nil || *q.Spec.Reclaimable,
	}
}

// AllQueueLimits reads the Queues of a list.
func AllQueueLimits(list client.ObjectList) []QueueLimits {
	queues, ok := list.(*schedulingv1beta1.QueueList)
	if !ok {
		return nil
	}
	all := make([]QueueLimits, len(queues.Items))
	for i := range queues.Items {
		all[i] = QueueLimitsOf(&queues.Items[i])
	}
	return all
}

// Membership is what decides a PodGroup's place in a queue.
type Membership struct {
	Key       types.NamespacedName
	Queue     string
	MinMember int32
	Created   time.Time
	// Deletion is when it should be gone; zero for one that is not being deleted.
	Deletion time.Time
	// Owner is the controller of the PodGroup, nil for one without.
	Owner *metav1.OwnerReference
	// PriorityClass orders it among the gangs of its queue.
	PriorityClass string
	// Closeness is how close its members must be to each other; nil if that does not matter. Unread names what of that is not
	// understood; empty for nothing.
	Closeness *Closeness
	Unread    string
}

// MembershipOf reads a PodGroup.
func MembershipOf(o client.Object) Membership {
	pg, ok := o.(*schedulingv1beta1.PodGroup)
	if !ok {
		return Membership{}
	}
	m := Membership{
		Key: client.ObjectKeyFromObject(pg), Queue: pg.Spec.Queue, MinMember: pg.Spec.MinMember,
		Created: pg.CreationTimestamp.Time, Owner: metav1.GetControllerOf(pg),
		PriorityClass: pg.Spec.PriorityClassName,
	}
	m.Closeness, m.Unread = closenessOf(&pg.Spec)
	if pg.DeletionTimestamp != nil {
		m.Deletion = pg.DeletionTimestamp.Time
	}
	return m
}

// AllMemberships reads the PodGroups of a list.
func AllMemberships(list client.ObjectList) []Membership {
	groups, ok := list.(*schedulingv1beta1.PodGroupList)
	if !ok {
		return nil
	}
	all := make([]Membership, len(groups.Items))
	for i := range groups.Items {
		all[i] = MembershipOf(&groups.Items[i])
	}
	return all
}

// GroupOf is the name of the PodGroup that a pod belongs to; empty for none.
func GroupOf(pod *corev1.Pod) string {
	return pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]
}

// MembershipChanged passes changes of a PodGroup's queue, priority and size.
func MembershipChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := MembershipOf(e.ObjectOld), MembershipOf(e.ObjectNew)
		return before.Queue != after.Queue || before.PriorityClass != after.PriorityClass || before.MinMember != after.MinMember
	}}
}

// Word is what Volcano last said of a PodGroup.
type Word struct {
	// At is when it wrote a condition; zero where no scheduler has judged the group.
	At time.Time
	// Waits holds for a gang that is not placed. Volcano writes its condition anew about once a minute. Of others it says nothing
	// more, even while members beyond the minimum wait, as surplus does.
	Waits bool
}

// LastWords are what Volcano last said of each PodGroup.
func LastWords(list client.ObjectList) map[client.ObjectKey]Word {
	all := map[client.ObjectKey]Word{}
	groups, ok := list.(*schedulingv1beta1.PodGroupList)
	if !ok {
		return all
	}
	for i := range groups.Items {
		pg := &groups.Items[i]
		w := Word{}
		switch pg.Status.Phase {
		case "", schedulingv1beta1.PodGroupPending, schedulingv1beta1.PodGroupInqueue:
			w.Waits = true
		case schedulingv1beta1.PodGroupRunning, schedulingv1beta1.PodGroupUnknown, schedulingv1beta1.PodGroupCompleted:
		}
		for _, c := range pg.Status.Conditions {
			if c.LastTransitionTime.After(w.At) {
				w.At = c.LastTransitionTime.Time
			}
		}
		all[client.ObjectKeyFromObject(pg)] = w
	}
	return all
}

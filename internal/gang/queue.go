package gang

import (
	"reflect"

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

// QueueChanged passes on what opens or closes a Queue, and not the figures that Volcano updates all the time.
func QueueChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return QueueState(e.ObjectOld) != QueueState(e.ObjectNew)
	}}
}

// PodGroupChanged passes on what a job's reconciler reads of a PodGroup, and not the counts that Volcano updates all the time.
func PodGroupChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		// Not the generation: without a status subresource it counts status writes too.
		return !reflect.DeepEqual(StateOf(e.ObjectOld), StateOf(e.ObjectNew)) ||
			(e.ObjectNew.GetDeletionTimestamp() != nil) != (e.ObjectOld.GetDeletionTimestamp() != nil)
	}}
}

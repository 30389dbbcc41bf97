package gang

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// Share is a Queue as Tideline wants it: the fields that it owns and no others.
type Share struct {
	Name string
	// Labels and Annotations are those of a Queue that is created.
	Labels, Annotations map[string]string
	Weight              int32
	// Guarantee is at most Deserved, and Deserved at most Capability. A Capability that is not empty lists every resource of the
	// others, because Volcano's webhook takes one that it does not list for zero there, and its scheduler for no limit
	// (pkg/webhooks/admission/queues/validate, v1.14).
	Guarantee, Deserved, Capability corev1.ResourceList
	// Parent is empty if Volcano chooses it.
	Parent      string
	Reclaimable bool
}

// NewQueue returns the share as an object to create.
func (s Share) NewQueue() client.Object {
	return &schedulingv1beta1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: s.Labels, Annotations: s.Annotations},
		Spec: schedulingv1beta1.QueueSpec{
			Weight: s.Weight, Guarantee: schedulingv1beta1.Guarantee{Resource: s.Guarantee}, Deserved: s.Deserved,
			Capability: s.Capability, Parent: s.Parent, Reclaimable: ptr.To(s.Reclaimable),
		},
	}
}

// QueuePatch is the JSON patch that makes the Queue match the share. It replaces each field that Tideline owns as a whole, so
// that entries of others in it go. The API server refuses it for a Queue that was created since.
func (s Share) QueuePatch(q QueueInfo) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	patch := []operation{
		{"test", "/metadata/uid", q.UID},
		{"add", "/spec/weight", s.Weight},
		{"add", "/spec/reclaimable", &s.Reclaimable},
		{"add", "/spec/guarantee", schedulingv1beta1.Guarantee{Resource: s.Guarantee}},
	}
	for _, list := range []struct {
		path       string
		want, have corev1.ResourceList
	}{{"/spec/deserved", s.Deserved, q.Deserved}, {"/spec/capability", s.Capability, q.Capability}} {
		switch {
		case len(list.want) > 0:
			patch = append(patch, operation{"add", list.path, list.want})
		case len(list.have) > 0:
			patch = append(patch, operation{"remove", list.path, nil})
		}
	}
	if s.Parent != "" {
		patch = append(patch, operation{"add", "/spec/parent", s.Parent})
	}
	return json.Marshal(patch)
}

// QueueInfo is what Tideline reads of a Queue.
type QueueInfo struct {
	QueueLimits
	UID                 types.UID
	Labels, Annotations map[string]string
	Weight              int32
	Parent              string
	// Deleting is true for a Queue that is being deleted.
	Deleting bool
}

// QueueInfoOf reads a Queue.
func QueueInfoOf(o client.Object) QueueInfo {
	q, ok := o.(*schedulingv1beta1.Queue)
	if !ok {
		return QueueInfo{}
	}
	return QueueInfo{
		QueueLimits: QueueLimitsOf(q), UID: q.UID, Labels: q.Labels, Annotations: q.Annotations, Weight: q.Spec.Weight,
		Parent: q.Spec.Parent, Deleting: q.DeletionTimestamp != nil,
	}
}

// AllQueues reads the Queues of a list.
func AllQueues(list client.ObjectList) []QueueInfo {
	queues, ok := list.(*schedulingv1beta1.QueueList)
	if !ok {
		return nil
	}
	all := make([]QueueInfo, len(queues.Items))
	for i := range queues.Items {
		all[i] = QueueInfoOf(&queues.Items[i])
	}
	return all
}

// HasDrifted is true if a Queue differs from the share in a field that Tideline owns.
func (s Share) HasDrifted(q QueueInfo) bool {
	return s.IsRewritten(q) || !sameAmounts(s.Deserved, q.Deserved) || !sameAmounts(s.Capability, q.Capability)
}

// IsRewritten is true if they differ in a field that changes only when somebody edits the Queue or its profile, and not when
// nodes or other queues change.
func (s Share) IsRewritten(q QueueInfo) bool {
	return s.Weight != q.Weight || s.Reclaimable != q.Reclaimable || (s.Parent != "" && s.Parent != q.Parent) ||
		!sameAmounts(s.Guarantee, q.Guarantee)
}

// sameAmounts compares wanted amounts, in the form in which the API server returns them, with present ones.
func sameAmounts(want, have corev1.ResourceList) bool {
	if len(want) != len(have) {
		return false
	}
	for name, w := range want {
		stored, err := resource.ParseQuantity(w.String())
		h, there := have[name]
		if err == nil && (!there || h.Cmp(stored) != 0) {
			return false
		}
	}
	return true
}

// QueueSpecChanged passes changes of what a Queue may hold, and of its state.
func QueueSpecChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		// The generation is no use: Queues have no status subresource, so it counts status writes too.
		before, after := QueueInfoOf(e.ObjectOld), QueueInfoOf(e.ObjectNew)
		s := Share{
			Weight: before.Weight, Guarantee: before.Guarantee, Deserved: before.Deserved,
			Capability: before.Capability, Parent: before.Parent, Reclaimable: before.Reclaimable,
		}
		return s.HasDrifted(after) || !maps.Equal(before.Labels, after.Labels) || before.Parent != after.Parent ||
			before.State != after.State || before.Deleting != after.Deleting
	}}
}

package gang

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/event"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

func share() Share {
	return Share{
		Name: "ads", Labels: map[string]string{"team": "ads"}, Weight: 3, Reclaimable: true,
		Guarantee: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")},
		Deserved:  corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("12")},
	}
}

// edits are changes of a Queue, and whether they are of what Tideline says.
var edits = map[string]struct {
	edit func(*schedulingv1beta1.Queue)
	ours bool
}{
	"none":                  {func(*schedulingv1beta1.Queue) {}, false},
	"an annotation":         {func(q *schedulingv1beta1.Queue) { q.Annotations = map[string]string{"a": "b"} }, false},
	"a priority":            {func(q *schedulingv1beta1.Queue) { q.Spec.Priority = 3 }, false},
	"a parent of Volcano's": {func(q *schedulingv1beta1.Queue) { q.Spec.Parent = "root" }, false},
	"otherwise written": {func(q *schedulingv1beta1.Queue) {
		q.Spec.Deserved = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("12000m")}
	}, false},
	"weight":           {func(q *schedulingv1beta1.Queue) { q.Spec.Weight = 1 }, true},
	"deserved":         {func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = nil }, true},
	"capability":       {func(q *schedulingv1beta1.Queue) { q.Spec.Capability = q.Spec.Deserved }, true},
	"guarantee":        {func(q *schedulingv1beta1.Queue) { q.Spec.Guarantee.Resource = nil }, true},
	"reclaimable":      {func(q *schedulingv1beta1.Queue) { *q.Spec.Reclaimable = false }, true},
	"a resource added": {func(q *schedulingv1beta1.Queue) { q.Spec.Deserved["cpu"] = resource.MustParse("1") }, true},
}

func TestQueueDrifts(t *testing.T) {
	for name, c := range edits {
		t.Run(name, func(t *testing.T) {
			queue, _ := share().NewQueue().(*schedulingv1beta1.Queue)
			c.edit(queue)
			NewWithT(t).Expect(share().HasDrifted(QueueInfoOf(queue))).To(Equal(c.ours))
		})
	}
	queue, _ := share().NewQueue().(*schedulingv1beta1.Queue)
	below := share()
	below.Parent = "research"
	NewWithT(t).Expect(below.HasDrifted(QueueInfoOf(queue))).To(BeTrue(), "its parent is another")
	fewer := share()
	fewer.Deserved = nil
	NewWithT(t).Expect(fewer.HasDrifted(QueueInfoOf(queue))).To(BeTrue())
	NewWithT(t).Expect(fewer.IsRewritten(QueueInfoOf(queue))).To(BeFalse(), "shares change by themselves")
}

func TestPatchHasOwnFieldsOnlyAndWhole(t *testing.T) {
	g := NewWithT(t)
	patch, err := share().QueuePatch(QueueInfo{UID: "1", QueueLimits: QueueLimits{
		Capability: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(patch).To(MatchJSON(`[
		{"op": "test", "path": "/metadata/uid", "value": "1"},
		{"op": "add", "path": "/spec/weight", "value": 3},
		{"op": "add", "path": "/spec/reclaimable", "value": true},
		{"op": "add", "path": "/spec/guarantee", "value": {"resource": {"nvidia.com/gpu": "2"}}},
		{"op": "add", "path": "/spec/deserved", "value": {"nvidia.com/gpu": "12"}},
		{"op": "remove", "path": "/spec/capability"}
	]`))
	none := Share{Weight: 1, Parent: "root"}
	patch, err = none.QueuePatch(QueueInfo{UID: "1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(patch).To(MatchJSON(`[
		{"op": "test", "path": "/metadata/uid", "value": "1"},
		{"op": "add", "path": "/spec/weight", "value": 1},
		{"op": "add", "path": "/spec/reclaimable", "value": false},
		{"op": "add", "path": "/spec/guarantee", "value": {}},
		{"op": "add", "path": "/spec/parent", "value": "root"}
	]`))
}

func TestStatusOfAQueueWakesNobody(t *testing.T) {
	g := NewWithT(t)
	before, _ := share().NewQueue().(*schedulingv1beta1.Queue)
	before.Status.State = schedulingv1beta1.QueueStateOpen
	update := func(change func(*schedulingv1beta1.Queue)) bool {
		after := before.DeepCopy()
		change(after)
		return QueueSpecChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	g.Expect(update(func(q *schedulingv1beta1.Queue) { q.Status.Running = 5 })).To(BeFalse())
	g.Expect(update(func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosed })).To(BeTrue())
	g.Expect(update(func(q *schedulingv1beta1.Queue) { q.Spec.Weight = 9 })).To(BeTrue())
	g.Expect(update(func(q *schedulingv1beta1.Queue) { q.Labels = map[string]string{"team": "ads", "a": "b"} })).To(BeTrue())
}

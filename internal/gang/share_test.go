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
	"weight":      {func(q *schedulingv1beta1.Queue) { q.Spec.Weight = 1 }, true},
	"deserved":    {func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = nil }, true},
	"capability":  {func(q *schedulingv1beta1.Queue) { q.Spec.Capability = q.Spec.Deserved }, true},
	"guarantee":   {func(q *schedulingv1beta1.Queue) { q.Spec.Guarantee.Resource = nil }, true},
	"reclaimable": {func(q *schedulingv1beta1.Queue) { *q.Spec.Reclaimable = false }, true},
	"label":       {func(q *schedulingv1beta1.Queue) { q.Labels = nil }, true},
}

func TestQueueDrifts(t *testing.T) {
	for name, c := range edits {
		t.Run(name, func(t *testing.T) {
			queue, _ := share().Queue().(*schedulingv1beta1.Queue)
			c.edit(queue)
			NewWithT(t).Expect(share().Drifted(QueueInfoOf(queue))).To(Equal(c.ours))
		})
	}
	queue, _ := share().Queue().(*schedulingv1beta1.Queue)
	below := share()
	below.Parent = "research"
	NewWithT(t).Expect(below.Drifted(QueueInfoOf(queue))).To(BeTrue(), "its parent is another")
}

func TestQueueIsAppliedByOwnFields(t *testing.T) {
	g := NewWithT(t)
	content, err := share().Apply("uid-1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content["metadata"]).To(And(HaveKeyWithValue("uid", "uid-1"), HaveKeyWithValue("name", "ads")))
	g.Expect(content["spec"]).To(And(
		HaveLen(4), HaveKey("weight"), HaveKey("guarantee"), HaveKey("deserved"), HaveKey("reclaimable")))
}

func TestStatusOfAQueueWakesNobody(t *testing.T) {
	g := NewWithT(t)
	before, _ := share().Queue().(*schedulingv1beta1.Queue)
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

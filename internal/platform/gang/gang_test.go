package gang

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

func group() Group {
	return Group{
		Namespace: "ads", Name: "ctr", Queue: "gpus", PriorityClass: "tideline-exploratory", MinMember: 2,
		MinResources: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")},
	}
}

func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*schedulingv1beta1.PodGroup)
		drifted bool
	}{
		"as made":                    {func(*schedulingv1beta1.PodGroup) {}, false},
		"queue rewritten by webhook": {func(pg *schedulingv1beta1.PodGroup) { pg.Spec.Queue = "other" }, false},
		"same quantity otherwise written": {func(pg *schedulingv1beta1.PodGroup) {
			pg.Spec.MinResources = &corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2000m")}
		}, false},
		"somebody's own resource": {func(pg *schedulingv1beta1.PodGroup) {
			(*pg.Spec.MinResources)["cpu"] = resource.MustParse("5")
		}, false},
		"minMember": {func(pg *schedulingv1beta1.PodGroup) { pg.Spec.MinMember = 1 }, true},
		"class":     {func(pg *schedulingv1beta1.PodGroup) { pg.Spec.PriorityClassName = "x" }, true},
		"resources": {func(pg *schedulingv1beta1.PodGroup) { pg.Spec.MinResources = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			pg, _ := group().PodGroup().(*schedulingv1beta1.PodGroup)
			c.edit(pg)
			NewWithT(t).Expect(group().HasDrifted(StateOf(pg))).To(Equal(c.drifted))
		})
	}
}

func TestRestorePatchesOwnFieldsOnly(t *testing.T) {
	g := NewWithT(t)
	patch, err := group().RestorePatch("uid-1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(patch).NotTo(HaveKey("status"))
	g.Expect(patch["metadata"]).To(HaveKeyWithValue("uid", "uid-1"))
	g.Expect(patch["spec"]).To(And(HaveLen(3), HaveKeyWithValue("minMember", int64(2)), Not(HaveKey("queue"))))
}

func TestLastCheckpoint(t *testing.T) {
	g := NewWithT(t)
	saved := time.Date(2026, 11, 20, 10, 0, 20, 0, time.FixedZone("", 3600))
	at := func(after time.Duration) Group { return group().WithCheckpoint(saved.Add(after), nil) }
	pg := at(0).PodGroup()
	g.Expect(pg.GetAnnotations()).To(Equal(map[string]string{"volcano.sh/last-checkpoint-time": "2026-11-20T09:00:20Z"}))
	g.Expect(group().PodGroup().GetAnnotations()).To(BeEmpty())
	patch, err := at(0).RestorePatch("uid-1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(patch["metadata"]).To(HaveKeyWithValue("annotations",
		map[string]any{"volcano.sh/last-checkpoint-time": "2026-11-20T09:00:20Z"}))

	state := StateOf(pg)
	g.Expect(group().HasDrifted(state)).To(BeFalse(), "nothing newer is known")
	g.Expect(at(30*time.Second).HasDrifted(state)).To(BeFalse(), "of each minute one is told")
	g.Expect(at(40 * time.Second).HasDrifted(state)).To(BeTrue())
	g.Expect(at(-time.Hour).HasDrifted(state)).To(BeTrue(), "a clock was put right")
	g.Expect(at(0).HasDrifted(StateOf(group().PodGroup()))).To(BeTrue())
	pg.SetAnnotations(map[string]string{"volcano.sh/last-checkpoint-time": "yesterday"})
	g.Expect(at(0).HasDrifted(StateOf(pg))).To(BeTrue(), "somebody wrote nonsense")
	g.Expect(group().WithCheckpoint(time.Time{}, &state)).To(HaveField("LastCheckpoint", BeTemporally("==", saved)))
}

func TestUnschedulableUntilScheduledLater(t *testing.T) {
	g := NewWithT(t)
	at := func(s int64) metav1.Time { return metav1.NewTime(time.Unix(s, 0)) }
	pg, _ := group().PodGroup().(*schedulingv1beta1.PodGroup)
	pg.Status.Conditions = []schedulingv1beta1.PodGroupCondition{{
		Type: schedulingv1beta1.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Message: "no room",
		LastTransitionTime: at(10),
	}}
	g.Expect(StateOf(pg).Unschedulable).To(Equal("no room"))
	scheduled := schedulingv1beta1.PodGroupCondition{
		Type: schedulingv1beta1.PodGroupScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(9),
	}
	pg.Status.Conditions = append(pg.Status.Conditions, scheduled)
	g.Expect(StateOf(pg).Unschedulable).To(Equal("no room"), "it was scheduled before, not after")
	pg.Status.Conditions[1].LastTransitionTime = at(11)
	g.Expect(StateOf(pg).Unschedulable).To(BeEmpty())
}

func TestEventsThatWakeJobs(t *testing.T) {
	g := NewWithT(t)
	before, _ := group().PodGroup().(*schedulingv1beta1.PodGroup)
	after := before.DeepCopy()
	after.Status.Running, after.Generation = 2, 7
	g.Expect(PodGroupChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeFalse(), "counts are Volcano's")
	after.Spec.MinMember = 1
	g.Expect(PodGroupChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue())

	queue := &schedulingv1beta1.Queue{}
	open := queue.DeepCopy()
	open.Status.Running = 5
	g.Expect(QueueChanged().Update(event.UpdateEvent{ObjectOld: queue, ObjectNew: open})).To(BeFalse())
	open.Status.State = schedulingv1beta1.QueueStateOpen
	g.Expect(QueueChanged().Update(event.UpdateEvent{ObjectOld: queue, ObjectNew: open})).To(BeTrue())
	g.Expect(QueueState(open)).To(Equal(QueueOpen))
}

package testutil

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

func TestGangs(t *testing.T) {
	group := func(name, uid string) schedulingv1beta1.PodGroup {
		return schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}, Spec: schedulingv1beta1.PodGroupSpec{MinMember: 2},
		}
	}
	pod := func(group, node string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: group}},
			Spec:       corev1.PodSpec{NodeName: node},
		}
	}
	gangs := &Gangs{}
	for i, step := range []struct {
		groups []schedulingv1beta1.PodGroup
		pods   []corev1.Pod
		want   int
	}{
		{[]schedulingv1beta1.PodGroup{group("a", "1")}, nil, 1},
		{[]schedulingv1beta1.PodGroup{group("a", "1")}, []corev1.Pod{pod("a", "n"), pod("a", "")}, 1},
		{[]schedulingv1beta1.PodGroup{group("a", "1")}, []corev1.Pod{pod("a", "n"), pod("a", "n")}, 0},
		// One that had its place keeps it while its pods leave.
		{[]schedulingv1beta1.PodGroup{group("a", "1"), group("b", "2")}, []corev1.Pod{pod("a", "n"), pod("b", "")}, 1},
		// Another of the same name has none.
		{[]schedulingv1beta1.PodGroup{group("a", "3"), group("b", "2")}, nil, 2},
	} {
		if got := gangs.Waiting(step.groups, step.pods); got != step.want {
			t.Errorf("step %d: %d wait, want %d", i, got, step.want)
		}
	}
}

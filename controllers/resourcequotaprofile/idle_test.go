package resourcequotaprofile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/quota"
)

func TestATaskIsIdleForAsLongAsEachOfItsPods(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	pod := func(name, controller string, age time.Duration) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: name, Labels: map[string]string{"tideline.io/owner": "alice"},
		}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-age)),
		}}}}
		if controller != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: controller, Name: "nb", Controller: ptr.To(true)}}
		}
		return p
	}
	r := &Reconciler{config: config.DefaultConfiguration(), Dependencies: Dependencies{
		IdleTime: func(_, kind, name string, since time.Time) (time.Duration, bool) {
			return now.Sub(since), kind+"/"+name != "Pod/unknown"
		},
	}}
	tasks := idleTasks{}
	for _, p := range []*corev1.Pod{
		pod("nb-0", "StatefulSet", 30*time.Hour), pod("nb-1", "StatefulSet", 3*time.Hour), pod("alone", "", 40*time.Hour),
		pod("unknown", "", 50*time.Hour),
	} {
		r.noteIdle(tasks, p, 1000)
	}
	ours := pod("w", "", time.Hour)
	ours.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "tideline.io/v1beta1", Kind: "ElasticTrainingJob", Name: "ctr", Controller: ptr.To(true),
	}}
	r.noteIdle(tasks, ours, 1000)
	var all []quota.IdleTask
	for _, task := range tasks {
		all = append(all, *task)
	}
	g.Expect(all).To(ConsistOf(
		quota.IdleTask{Namespace: "ads", Kind: "StatefulSet", Name: "nb", User: "alice", Accelerators: 2000, Idle: 3 * time.Hour},
		quota.IdleTask{Namespace: "ads", Kind: "Pod", Name: "alone", User: "alice", Accelerators: 1000, Idle: 40 * time.Hour},
		quota.IdleTask{Namespace: "ads", Kind: "Pod", Name: "unknown", User: "alice", Accelerators: 1000},
	))
	r.IdleTime = nil
	r.noteIdle(idleTasks{}, pod("nb-0", "", time.Hour), 1000)
}

package arbiter

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestWholeStepsGiveWay(t *testing.T) {
	for name, c := range map[string]struct {
		// young are the workers that were placed a moment ago.
		young int
		leave int
	}{
		"all may leave":             {0, 3},
		"one step, if one may stay": {1, 3},
		"none, if one of each":      {4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			job := s.job("ctr", 8, 8)
			job.Spec.Elasticity.Step, job.Spec.Elasticity.Shrink.MinRunSeconds = 3, ptr.To[int32](600)
			for _, p := range s.ofJob("ctr")[2 : 2+c.young] {
				p.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Second)),
				}}
			}
			waitingSince(s.job("ranker", 4, 0), now.Add(-time.Hour))
			a := s.arbiter()
			a.config.Tiers[0].MaxMinSurplusRunSeconds = 600
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			leave := a.VerdictFor(key("ctr")).GiveUp
			g.Expect(leave).To(HaveLen(c.leave))
			if c.leave == 3 {
				g.Expect(leave).To(ConsistOf(types.UID("ctr-worker-7"), types.UID("ctr-worker-6"), types.UID("ctr-worker-5")))
			}
			if c.leave > 0 {
				g.Expect(a.VerdictFor(key("ranker")).From).To(ConsistOf(HaveField("Workers", int32(3))), "the gang of two is told so")
			}
		})
	}
}

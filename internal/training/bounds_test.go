package training

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

// A job that was admitted goes on when the configuration bounds what it asks for: only what it is given shrinks.
func TestJobThatHasBegunOutlivesTighterBounds(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4)
	w.o.Job.Spec.Elasticity.Shrink.MinRunSeconds = ptr.To[int32](600)
	w.o.Job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600)
	w.o.Config.Tiers[0].MaxMinSurplusRunSeconds = 600
	w.trains()
	w.o.Config.Tiers[0].MaxMinSurplusRunSeconds, w.o.Config.Limits.MaxGraceSeconds = 0, 30
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"))
	w.deletePod(1).settle()
	g.Expect(w.indices()).To(ContainElement(int32(1)), "who is lost is created anew")
	w.suspend(true).settle()
	w.suspend(false).settle()
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"), "nor is its next gang refused")
	g.Expect(w.indices()).To(ConsistOf(int32(0), int32(1)))
}

// Others wait for the room of whoever leaves on the operator's word.
func TestWhoeverIsDeletedIsGoneInTwoMinutes(t *testing.T) {
	for why, leave := range map[string]func(*simulator){
		"for a gang that waits": func(w *simulator) { w.told(3) },
		"for a more important gang": func(w *simulator) {
			w.o.Verdict.Preempt = &capacity.Preemption{By: types.NamespacedName{Name: "launch"}}
		},
		"because it is suspended": func(w *simulator) { w.suspend(true) },
		"because it is scaled":    func(w *simulator) { w.scale(3) },
	} {
		for own, want := range map[int64]int64{0: 0, 30: 30, 120: 120, 121: 120, 86400: 120} {
			g := NewWithT(t)
			w := newSimulator(t, 2, 4).trains()
			for i := range w.o.Workers {
				w.o.Workers[i].GraceSeconds = own
			}
			leave(w)
			for range 5 {
				if w.step(); len(w.last.DeletePods) > 0 {
					break
				}
				w.pass(statuspace.SoonDelay)
			}
			g.Expect(w.last.DeletePods).NotTo(BeEmpty(), why)
			g.Expect(w.last.DeletePods).To(HaveEach(HaveField("GraceSeconds", want)), "%s, of %d s", why, own)
		}
	}
}

func TestGraceIsReadFromThePod(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{}
	g.Expect(podstate.ReadWorker(pod, 0).GraceSeconds).To(BeEquivalentTo(30), "as Kubernetes has it")
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	g.Expect(podstate.ReadWorker(pod, 0).GraceSeconds).To(BeZero())
}

package elastic

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// A job that was admitted goes on when the configuration bounds what it asks for: only what it is given shrinks.
func TestJobThatHasBegunOutlivesTighterBounds(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 2, 4)
	w.o.Job.Spec.Elasticity.MinSurplusRunSeconds = ptr.To[int32](600)
	w.o.Job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600)
	w.o.Config.Tiers[0].MaxMinSurplusRunSeconds = 600
	w.trains()
	w.o.Config.Tiers[0].MaxMinSurplusRunSeconds, w.o.Config.Limits.MaxGraceSeconds = 0, 30
	w.settle()
	g.Expect(condition(w, v1alpha1.ConditionStalled)).To(Equal("absent"))
	w.deletePod(1).settle()
	g.Expect(w.indices()).To(ContainElement(int32(1)), "who is lost is created anew")
	w.suspend(true).settle()
	w.suspend(false).settle()
	g.Expect(condition(w, v1alpha1.ConditionStalled)).To(Equal("absent"), "nor is its next gang refused")
	g.Expect(w.indices()).To(ConsistOf(int32(0), int32(1)))
}

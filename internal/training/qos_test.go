package training

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// An upgrade, or another configuration, does not stop a job that has begun, with its gang or without one for a while: it goes on
// with what its template allows.
func TestJobThatHasBegunOutlivesAnotherQoS(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	before := w.o.Core
	for i := range w.o.Config.Tiers {
		w.o.Config.Tiers[i].QoS = config.QoSGuaranteed
	}
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"))
	g.Expect(w.last.RestoreGroups).To(BeEmpty())
	g.Expect(w.o.Core).To(Equal(before))
	w.deletePod(1).settle()
	g.Expect(w.indices()).To(ContainElement(int32(1)), "who is lost is created anew")
	w.suspend(true).settle()
	g.Expect(w.o.Core).To(BeNil())
	w.suspend(false).settle()
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"))
	g.Expect(w.indices()).To(ConsistOf(int32(0), int32(1)), "nor is its next gang refused")

	w = newSimulator(t, 2, 4)
	for i := range w.o.Config.Tiers {
		w.o.Config.Tiers[i].QoS = config.QoSGuaranteed
	}
	w.settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonQoSNotMet), "one that has not begun is held to it")
	g.Expect(w.indices()).To(BeEmpty())
}

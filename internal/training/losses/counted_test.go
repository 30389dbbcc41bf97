package losses

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestEveryDisruptionHasAReasonOfTheSet(t *testing.T) {
	g := NewWithT(t)
	for disruption, want := range map[string]string{
		"PreemptionByScheduler": EvictionScheduler, "DeletionByPodGC": EvictionNodeLost, "TerminationByKubelet": EvictionKubelet,
		"EvictionByEvictionAPI": EvictionDrained, "SomethingNew": EvictionOther, "": EvictionOther, Told: EvictionTold,
	} {
		g.Expect(evictionReason(disruption)).To(Equal(want), disruption)
		g.Expect(EvictionReasons()).To(ContainElement(want))
	}
}

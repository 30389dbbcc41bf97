package config

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestDefaultTiers(t *testing.T) {
	g := NewWithT(t)
	tiers := DefaultTiers()
	g.Expect(tiers.Names()).To(Equal("exploratory, small-traffic, main-traffic"))
	for i, tier := range tiers {
		g.Expect(tier.Priority).To(BeNumerically(">", 0), "every core comes before anybody's surplus")
		g.Expect(tier.SurplusPriority).To(BeNumerically("<", -10), "cluster-autoscaler buys no nodes for surplus")
		if i > 0 {
			g.Expect(tier.Priority).To(BeNumerically(">", tiers[i-1].Priority))
			g.Expect(tier.SurplusPriority).To(BeNumerically(">", tiers[i-1].SurplusPriority))
		}
	}
}

func TestFind(t *testing.T) {
	g := NewWithT(t)
	tier, ok := DefaultTiers().Find("")
	g.Expect(ok).To(BeTrue())
	g.Expect(tier.Name).To(Equal("exploratory"))
	tier, ok = DefaultTiers().Find("main-traffic")
	g.Expect(ok).To(BeTrue())
	g.Expect(tier.ClassName()).To(Equal("tideline-main-traffic"))
	g.Expect(tier.SurplusClassName()).To(Equal("tideline-main-traffic-surplus"))
	_, ok = DefaultTiers().Find("gold")
	g.Expect(ok).To(BeFalse())
}

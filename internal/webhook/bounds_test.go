package webhook

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/config"
)

func TestTierBoundsHowLongSurplusIsLeftAlone(t *testing.T) {
	const refused = "spec.elasticity.minSurplusRunSeconds: Invalid value: 601: is more than the 600 s for which the operator's " +
		"configuration lets surplus of tier small-traffic be left alone while gangs wait (tiers[].maxMinSurplusRunSeconds): lower " +
		"it, or ask for the limit to be raised"
	for asked, says := range map[int32]string{0: "", 600: "", 601: refused} {
		g := NewWithT(t)
		cfg := config.Defaults()
		cfg.Tiers[1].MaxMinSurplusRunSeconds = 600
		job := &v1alpha1.ElasticTrainingJob{Spec: v1alpha1.ElasticTrainingJobSpec{Tier: "small-traffic"}}
		job.Spec.Elasticity.MinSurplusRunSeconds = ptr.To(asked)
		d := Decide(job, Creation{User: "alice"}, Rules{Config: cfg})
		if says == "" {
			g.Expect(d.Refused).To(BeEmpty())
			continue
		}
		g.Expect(d.Refused.ToAggregate()).To(MatchError(says))
		job.Spec.Tier = "exploratory"
		g.Expect(Decide(job, Creation{User: "alice"}, Rules{Config: cfg}).Refused.ToAggregate()).To(MatchError(ContainSubstring(
			"more than the 0 s for which")), "a tier protects none by default")
	}
}

package webhook

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

func TestTierBoundsHowLongSurplusIsLeftAlone(t *testing.T) {
	const refused = "spec.elasticity.shrink.minRunSeconds: Invalid value: 601: must be at most 600 s in tier " +
		"small-traffic, because " +
		"gangs wait that long (tiers[].maxMinSurplusRunSeconds of the operator's configuration): lower it, or ask an administrator " +
		"to raise the limit"
	for asked, says := range map[int32]string{0: "", 600: "", 601: refused} {
		g := NewWithT(t)
		cfg := config.DefaultConfiguration()
		cfg.Tiers[1].MaxMinSurplusRunSeconds = 600
		job := &v1beta1.ElasticTrainingJob{Spec: v1beta1.ElasticTrainingJobSpec{Tier: "small-traffic"}}
		job.Spec.Elasticity.Shrink.MinRunSeconds = ptr.To(asked)
		d := DecideCreation(job, Creation{User: "alice"}, Rules{Config: cfg})
		if says == "" {
			g.Expect(d.Refused).To(BeEmpty())
			continue
		}
		g.Expect(d.Refused.ToAggregate()).To(MatchError(says))
		job.Spec.Tier = "exploratory"
		g.Expect(DecideCreation(job, Creation{User: "alice"}, Rules{Config: cfg}).Refused.ToAggregate()).To(MatchError(ContainSubstring(
			"must be at most 0 s")), "a tier protects none by default")
	}
}

func TestConfigurationBoundsGrace(t *testing.T) {
	const at = "spec.template.spec.terminationGracePeriodSeconds"
	const refused = ": Invalid value: 601: must be at most 600 s, because others wait that long for the room " +
		"(limits.maxGraceSeconds of the operator's configuration): lower it, or ask an administrator to raise the limit"
	for name, c := range map[string]struct {
		grace, template int64
		job, merge      []string
	}{
		"nothing":          {},
		"as much":          {grace: 600, template: 600},
		"of the template":  {template: 601, job: []string{at + refused}, merge: []string{at + refused}},
		"for a checkpoint": {grace: 601, job: []string{"spec.checkpoint.graceSeconds" + refused}},
		"of both":          {601, 601, []string{at + refused, "spec.checkpoint.graceSeconds" + refused}, []string{at + refused}},
	} {
		t.Run(name, func(t *testing.T) {
			job, merge := &v1beta1.ElasticTrainingJob{}, mergeSpec()
			if c.template > 0 {
				job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To(c.template)
				merge.Template.Spec.TerminationGracePeriodSeconds = ptr.To(c.template)
			}
			job.Spec.Checkpoint.GraceSeconds = ptr.To(int32(c.grace))
			rules := Rules{Config: config.DefaultConfiguration()}
			said := func(d Decision) (all []string) {
				for _, e := range d.Refused {
					all = append(all, e.Error())
				}
				return all
			}
			g := NewWithT(t)
			g.Expect(said(DecideCreation(job, Creation{User: "alice"}, rules))).To(Equal(c.job))
			g.Expect(said(DecideMerge(merge, Creation{User: "alice"}, rules))).To(Equal(c.merge))
		})
	}
}

package webhook

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

func TestTierDecidesOnResources(t *testing.T) {
	amounts := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	const (
		at   = `spec.template.spec.containers[0].resources.`
		same = `: remove one of the two, or choose another tier`
	)
	for name, c := range map[string]struct {
		tier            string
		requests, limit corev1.ResourceList
		refused         []string
	}{
		"no tier":                    {requests: amounts("1", "1Gi"), limit: amounts("2", "2Gi")},
		"small-traffic, requests":    {tier: "small-traffic", requests: amounts("1", "1Gi")},
		"small-traffic, nothing":     {tier: "small-traffic"},
		"main-traffic, requests":     {tier: "main-traffic", requests: amounts("1", "1Gi")},
		"main-traffic, limits":       {tier: "main-traffic", limit: amounts("1", "1Gi")},
		"a tier that does not exist": {tier: "gold", refused: []string{"is not a tier of the operator's configuration"}},
		"small-traffic, contradicted": {"small-traffic", amounts("1", "1Gi"), amounts("2", "2Gi"), []string{
			at + `limits[memory]: Invalid value: "2Gi": must equal the request (1Gi), because tier small-traffic is MemoryGuaranteed` +
				same,
		}},
		"main-traffic, contradicted": {"main-traffic", amounts("1", "1Gi"), amounts("2", "1Gi"), []string{
			at + `limits[cpu]: Invalid value: "2": must equal the request (1), because tier main-traffic is Guaranteed` + same,
		}},
		"main-traffic, nothing": {tier: "main-traffic", refused: []string{
			at + `requests: Required value: tier main-traffic (Guaranteed) needs cpu and memory requests on every container, and ` +
				`"trainer" has neither: add them, or choose another tier`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "trainer", Resources: corev1.ResourceRequirements{Requests: c.requests, Limits: c.limit},
			}}}}
			job := &v1beta1.ElasticTrainingJob{Spec: v1beta1.ElasticTrainingJobSpec{Tier: c.tier, Template: template}}
			merge := mergeSpec()
			merge.Tier, merge.Template = c.tier, template
			rules := Rules{Config: config.DefaultConfiguration()}
			for kind, d := range map[string]Decision{
				"job": DecideCreation(job, Creation{User: "alice"}, rules), "merge": DecideMerge(merge, Creation{User: "alice"}, rules),
			} {
				g.Expect(d.Refused).To(HaveLen(len(c.refused)), kind)
				for i, says := range c.refused {
					g.Expect(d.Refused[i].Error()).To(ContainSubstring(says), kind)
				}
			}
		})
	}
}

func TestDefaultTierOfTheProfileDecidesOnResources(t *testing.T) {
	job := &v1beta1.ElasticTrainingJob{}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer"}}
	of := &v1beta1.ResourceQuotaProfile{}
	of.Spec.Tiers = []v1beta1.ProfileTier{{Name: "main-traffic", Default: true}}
	d := DecideCreation(job, Creation{User: "alice"}, Rules{Config: config.DefaultConfiguration(), Profile: of})
	NewWithT(t).Expect(d.Refused).To(HaveLen(1))
}

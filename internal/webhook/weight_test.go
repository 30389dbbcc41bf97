package webhook

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// The operator keeps the templates of all jobs, so nobody may have one without end; who has one already may edit the rest.
func TestTemplatesWithoutEndAreRefused(t *testing.T) {
	g := NewWithT(t)
	rules := Rules{Config: config.DefaultConfiguration()}
	job := &v1beta1.ElasticTrainingJob{Spec: v1beta1.ElasticTrainingJobSpec{MinReplicas: 1, MaxReplicas: 1}}
	merge := &v1beta1.MergeJobSpec{MinReplicas: 1, MaxReplicas: 1}
	fill := func(n int) {
		for _, template := range []*corev1.PodTemplateSpec{&job.Spec.Template, &merge.Template} {
			template.Spec.Containers = []corev1.Container{{Name: "c", Args: []string{strings.Repeat("x", n)}}}
		}
	}
	refusal := ContainElement(MatchError(MatchRegexp(
		`^spec\.template: Invalid value: \d+: takes so many bytes of memory, roles and master included, and must take at most ` +
			`131072, because the operator keeps the templates of all jobs: move long texts into the image or a ConfigMap$`)))
	fill(120 << 10)
	g.Expect(refuseJob(job, nil, rules)).NotTo(refusal)
	g.Expect(refuseMerge(merge, nil, rules)).NotTo(refusal)
	fill(128 << 10)
	g.Expect(refuseJob(job, nil, rules)).To(refusal)
	g.Expect(refuseMerge(merge, nil, rules)).To(refusal)
	fill(100 << 10)
	g.Expect(refuseJob(job, nil, rules)).NotTo(refusal)
	job.Spec.Roles = []v1beta1.JobRole{{Name: "ps", Args: []string{strings.Repeat("x", 30<<10)}}}
	g.Expect(refuseJob(job, nil, rules)).To(refusal, "roles are kept too")
	first := job.DeepCopy()
	first.Spec.Roles, first.Spec.Master = nil, &v1beta1.Master{NodeSelector: map[string]string{"a": strings.Repeat("x", 30<<10)}}
	g.Expect(refuseJob(first, nil, rules)).To(refusal, "and so is what worker 0 has of its own")
	after := job.DeepCopy()
	after.Spec.MaxReplicas = 2
	g.Expect(DecideChange(job, after, Creation{}, rules).Refused).NotTo(refusal)
}

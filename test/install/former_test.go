package install

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/integration/badinput"
	"github.com/tideline-io/tideline/test/testutil"
)

// formerFields are names of the version before, in the spec of a job, and how this version refuses them.
var formerFields = []struct{ content, refusal string }{
	{`{"runPolicy":{"maxRestarts":3}}`, "spec.runPolicy: Invalid value: runPolicy has been split: write suspend in spec"},
	{`{"rendezvous":{"joinTimeoutSeconds":60}}`, "spec.rendezvous: Invalid value: rendezvous has been replaced by framework"},
	{`{"nprocPerNode":1}`, "spec.nprocPerNode: Invalid value: 1: nprocPerNode has moved: write spec.framework.nprocPerNode"},
	{`{"elasticity":{"cooldownSeconds":30}}`,
		"spec.elasticity.cooldownSeconds: Invalid value: 30: cooldownSeconds has moved: write spec.elasticity.growth.cooldownSeconds"},
}

var _ = Describe("A version with other field names", func() {
	It("leaves jobs that this version refuses, and says what to write instead", func(ctx SpecContext) {
		before, now := previousVersion.render(ctx), thisVersion.render(ctx)
		if before.hasJobField("suspend") {
			Skip("the version before, " + before.version.Name + ", has the field names of this one")
		}
		r := &rollout{target: newTarget(ctx)}
		r.apply(ctx, before.objects, r.next())
		r.replace(ctx, before)
		s := r.NewScenario(GinkgoT(), "former", 2)
		s.Create(formerJob(s, "old"))
		Eventually(s.Fetch("old")).Should(testutil.Train(1), "it trains, as the version before has it")

		r.apply(ctx, now.objects, r.next())
		r.replace(ctx, now)
		Eventually(s.Fetch("old")).Should(testutil.BeStalled(v1alpha1.ReasonInvalidSpec), "this version does not take it")
		for _, former := range formerFields {
			Expect(s.Read("old").Status.Message).To(ContainSubstring(former.refusal), "it says what to write instead")
			err := s.Client.Create(s.Context(), withSpec(s.Job("new").Range(1, 1), former.content))
			Expect(err).To(MatchError(ContainSubstring(former.refusal)), "a new job is refused in the same words")
		}
		s.DeleteJob("old")
		Eventually(s.Workers("old")).Should(BeEmpty(), "it leaves nothing")
		s.Submit(s.Job("new").Range(1, 1))
		Eventually(s.Fetch("new")).Should(testutil.Train(1), "the names of this version train")
	})
})

// formerJob is a job of one worker with every former field. What the schema of this version requires besides is left out, because
// the version before gives some of it another type.
func formerJob(s *testutil.Scenario, name string) *unstructured.Unstructured {
	GinkgoHelper()
	contents := make([]string, len(formerFields))
	for i, former := range formerFields {
		contents[i] = former.content
	}
	o := withSpec(s.Job(name).Range(1, 1), contents...)
	unstructured.RemoveNestedField(o.Object, "spec", "successPolicy")
	return o
}

// withSpec is a job with more fields in its spec.
func withSpec(job *testutil.JobBuilder, contents ...string) *unstructured.Unstructured {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job.Obj())
	Expect(err).NotTo(HaveOccurred(), "a job is an object")
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ElasticTrainingJobKind))
	unstructured.RemoveNestedField(o.Object, "status")
	for _, content := range contents {
		more := map[string]any{}
		Expect(json.Unmarshal([]byte(content), &more)).To(Succeed(), "the fields are JSON")
		badinput.Merge(o.Object, map[string]any{"spec": more})
	}
	return o
}

// hasJobField is true for a version whose ElasticTrainingJob has a field of that name in its spec.
func (i installation) hasJobField(name string) bool {
	GinkgoHelper()
	definitions, _ := split(i.objects)
	for _, o := range definitions {
		if o.GetName() != "elastictrainingjobs.tideline.io" {
			continue
		}
		versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
		Expect(err).NotTo(HaveOccurred(), "the definition has versions")
		for _, version := range versions {
			_, found, err := unstructured.NestedMap(version.(map[string]any),
				"schema", "openAPIV3Schema", "properties", "spec", "properties", name)
			Expect(err).NotTo(HaveOccurred(), "the version has a schema")
			if found {
				return true
			}
		}
	}
	return false
}

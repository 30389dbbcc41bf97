package upgrade

import (
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/integration/badinput"
	"github.com/tideline-io/tideline/test/testutil"
)

// FormerFields are names of the version before, in the spec of a job, and how this version refuses them.
var FormerFields = []struct{ Content, Refusal string }{
	{`{"runPolicy":{"maxRestarts":3}}`, "spec.runPolicy: Invalid value: runPolicy has been split: write suspend in spec"},
	{`{"rendezvous":{"joinTimeoutSeconds":60}}`, "spec.rendezvous: Invalid value: rendezvous has been replaced by framework"},
	{`{"nprocPerNode":1}`, "spec.nprocPerNode: Invalid value: 1: nprocPerNode has moved: write spec.framework.nprocPerNode"},
	{`{"elasticity":{"cooldownSeconds":30}}`,
		"spec.elasticity.cooldownSeconds: Invalid value: 30: cooldownSeconds has moved: write spec.elasticity.growth.cooldownSeconds"},
}

// FormerJob is a job of one worker with every former field. What the schema of this version requires besides is left out, because
// the version before gives some of it another type.
func FormerJob(s *testutil.Scenario, name string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	contents := make([]string, len(FormerFields))
	for i, former := range FormerFields {
		contents[i] = former.Content
	}
	o := WithSpec(s.Job(name).Range(1, 1), contents...)
	unstructured.RemoveNestedField(o.Object, "spec", "successPolicy")
	return o
}

// WithSpec is a job with more fields in its spec.
func WithSpec(job *testutil.JobBuilder, contents ...string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job.Obj())
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "a job is an object")
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(v1beta1.OwnerVersion.WithKind(v1beta1.ElasticTrainingJobKind))
	unstructured.RemoveNestedField(o.Object, "status")
	for _, content := range contents {
		more := map[string]any{}
		gomega.Expect(json.Unmarshal([]byte(content), &more)).To(gomega.Succeed(), "the fields are JSON")
		badinput.Merge(o.Object, map[string]any{"spec": more})
	}
	return o
}

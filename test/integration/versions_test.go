package integration

import (
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/integration/badinput"
	"github.com/tideline-io/tideline/test/testutil"
)

// offerVersions has the specs of the two versions of the API, for a user with the role edit, whose job it is where webhooks
// record that.
func offerVersions(scenario func(name string, gpus ...int64) *testutil.Scenario, webhooks bool) {
	It("takes, shows and changes one job in both versions", func() {
		s := scenario("versions", 4)
		hers := as(s, engineer, "edit")
		Expect(hers.Create(s.Context(), inVersion(s.Job("a").Range(2, 4).Obj(), v1beta1.OwnerVersion.String()))).To(Succeed(),
			"the user writes the earlier version")
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "its job trains")
		if webhooks {
			Expect(s.Read("a").Spec.Owner).To(Equal(engineer), "the webhooks saw it")
		}
		Expect(hers.Patch(s.Context(), inVersion(s.Read("a"), v1beta1.OwnerVersion.String()),
			client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"maxReplicas":3}}`)))).To(Succeed(), "the user changes it so")
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "it shrinks")

		Eventually(func() (string, error) {
			now, before := shown(s, "elastictrainingjobs.v1beta1.tideline.io"), shown(s, "elastictrainingjobs.v1alpha1.tideline.io")
			if now["apiVersion"] != "tideline.io/v1beta1" || before["apiVersion"] != "tideline.io/v1alpha1" {
				return "", fmt.Errorf("kubectl shows %v and %v", now["apiVersion"], before["apiVersion"])
			}
			before["apiVersion"] = now["apiVersion"]
			one, err := json.Marshal(now)
			if err != nil {
				return "", err
			}
			other, err := json.Marshal(before)
			Expect(other).To(MatchJSON(one), "both show the same object")
			return string(other), err
		}).Should(ContainSubstring(`"phase":"Running"`), "with its status")
		_, warned, err := runKubectl(s, "get", "elastictrainingjobs.v1alpha1.tideline.io", "a")
		Expect(err).NotTo(HaveOccurred(), "the earlier version is shown")
		Expect(warned).To(Equal("Warning: apiVersion tideline.io/v1alpha1 of ElasticTrainingJob is deprecated: "+
			"write tideline.io/v1beta1, which has the same fields\n"), "with a word about it")
	})

	It("refuses the same in both versions, in the same words", func() {
		s := scenario("versions-refused")
		hers := as(s, engineer, "edit")
		tried := 0
		for _, c := range append(badinput.Cases(), badinput.MergeCases()...) {
			if c.Overwritten {
				continue
			}
			o, err := c.Object(s.Namespace)
			Expect(err).NotTo(HaveOccurred(), "the case is well formed")
			if tried++; tried%8 != 0 { // the rules are the same, which a test of the definitions holds
				continue
			}
			o.SetAPIVersion(v1beta1.OwnerVersion.String())
			Expect(hers.Create(s.Context(), o, client.DryRunAll)).To(MatchError(c.Refusal(o.GetName())), "%s: the whole answer", c.What)
		}
		Expect(tried).To(BeNumerically(">", 100), "there are cases")
	})
}

// inVersion is a job as a manifest of a version has it, without what the API server adds.
func inVersion(job *v1beta1.ElasticTrainingJob, apiVersion string) *unstructured.Unstructured {
	GinkgoHelper()
	content, err := json.Marshal(job)
	Expect(err).NotTo(HaveOccurred(), "a job is JSON")
	o := &unstructured.Unstructured{Object: map[string]any{}}
	Expect(json.Unmarshal(content, &o.Object)).To(Succeed(), "a job is JSON")
	o.SetAPIVersion(apiVersion)
	o.SetKind(v1beta1.ElasticTrainingJobKind)
	delete(o.Object, "status")
	return o
}

// shown is job a as kubectl shows it by the name of a resource.
func shown(s *testutil.Scenario, resource string) map[string]any {
	GinkgoHelper()
	content := map[string]any{}
	Expect(json.Unmarshal([]byte(kubectl(s, "get", resource, "a", "-o", "json")), &content)).To(Succeed(), "kubectl prints JSON")
	return content
}

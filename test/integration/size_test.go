package integration

import (
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil/largest"
)

// statusLimit bounds a job's status and the record of who set its fields, in bytes of JSON.
const statusLimit = 502_000

var _ = Describe("The largest status", func() {
	It("is taken by the API server, and stays small with the record of who set its fields", func() {
		s := newScenario("size")
		s.Submit(s.Job("a").Range(1, 4096).With(func(a *v1beta1.ElasticTrainingJob) { a.Spec.Suspend = true }))
		a := &v1beta1.ElasticTrainingJob{}
		// It is asked for and not kept, because the operator would write its own over it; and it may do so in between.
		Eventually(func() error {
			a = s.Read("a")
			a.Status = largest.Status()
			return s.Client.Status().Update(s.Context(), a, client.DryRunAll)
		}).Should(Succeed())
		Expect(a.Status.Members).To(HaveLen(4096))
		Expect(a.ManagedFields).NotTo(BeEmpty(), "the API server records who set the fields")
		status, err := json.Marshal(a.Status)
		Expect(err).NotTo(HaveOccurred())
		fields, err := json.Marshal(a.ManagedFields)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry(fmt.Sprintf("%d bytes of status, %d of managedFields", len(status), len(fields)))
		Expect(len(status) + len(fields)).To(BeNumerically("<", statusLimit))
	})
})

package pytorchjob

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// The other ways past the caps of a profile are in test/integration/profile.
var _ = Describe("T11: a profile that refuses other workloads", func() {
	It("lets a PyTorchJob have no pod", func(ctx SpecContext) {
		s := shared.World.NewScenario(GinkgoT(), "guarded", 2)
		s.Join("guarded")
		profile := testutil.Profile("guarded").PerUser(1).With(func(spec *v1beta1.ResourceQuotaProfileSpec) {
			spec.Caps.OtherWorkloads = v1beta1.OtherWorkloadsRefuse
		}).Obj()
		s.Create(profile)
		DeferCleanup(func(ctx SpecContext) { Expect(s.Client.Delete(ctx, profile)).To(Succeed()) })
		Eventually(func() ([]string, error) {
			err := s.Client.Get(ctx, client.ObjectKeyFromObject(profile), profile)
			var reasons []string
			for _, c := range profile.Status.Conditions {
				reasons = append(reasons, c.Reason)
			}
			return reasons, err
		}).Should(ContainElement(v1beta1.ReasonGuardInForce))
		job := inPool(pyTorchJob(1, 1), s.Namespace)
		s.Create(job)
		DeferCleanup(func() { s.Delete(job) })
		Eventually(func() ([]string, error) {
			events := &corev1.EventList{}
			err := s.Client.List(ctx, events, client.InNamespace(s.Namespace))
			var messages []string
			for i := range events.Items {
				messages = append(messages, events.Items[i].Message)
			}
			return messages, err
		}).Should(ContainElement(ContainSubstring("keeps accelerators and resource claims in namespace")))
		pods := &corev1.PodList{}
		Expect(s.Client.List(ctx, pods, client.InNamespace(s.Namespace))).To(Succeed())
		Expect(pods.Items).To(BeEmpty())
	})
})

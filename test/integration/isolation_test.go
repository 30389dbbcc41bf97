package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Isolated workers", func() {
	isolated := func(job *v1beta1.ElasticTrainingJob) { job.Spec.NetworkPolicy = v1beta1.NetworkPolicyIsolated }

	It("have a policy before the first of them, and jobs that do not ask for it have none", func() {
		s := newScenario("isolated", 4)
		grant(s, "job-network-policy")
		s.Submit(s.Job("a").Range(1, 2).With(isolated), s.Job("b").Range(1, 1))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		Eventually(s.Fetch("b")).Should(testutil.Train(1), "B trains")
		policies := func() ([]networkingv1.NetworkPolicy, error) {
			list := &networkingv1.NetworkPolicyList{}
			err := s.Client.List(s.Context(), list, client.InNamespace(s.Namespace))
			return list.Items, err
		}
		have, err := policies()
		Expect(err).NotTo(HaveOccurred(), "policies are listed")
		Expect(have).To(HaveLen(1), "for A alone")
		policy := &have[0]
		Expect(metav1.IsControlledBy(policy, s.Read("a"))).To(BeTrue(), "it goes with the job")
		Expect(policy.Spec.PodSelector.MatchLabels).To(Equal(map[string]string{v1beta1.LabelJob: "a"}), "it selects A's workers")

		writes, err := s.Audit.Select(testutil.ByOperator, testutil.Change)
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		first := map[string]int{}
		for i, w := range writes {
			if _, seen := first[w.Resource+" "+w.Name]; !seen {
				first[w.Resource+" "+w.Name] = i
			}
		}
		written, worker := "networkpolicies "+policy.Name, "pods a-worker-0"
		Expect(first).To(And(HaveKey(written), HaveKey(worker)), "both were written")
		Expect(first[written]).To(BeNumerically("<", first[worker]), "before the first worker")

		s.Delete(policy)
		s.DeleteWorker("a", 0)
		Eventually(s.Fetch("a")).Should(And(testutil.HaveRestarts(1), testutil.Train(2)), "a worker of the core is created anew")
		Expect(policies()).To(HaveLen(1), "with the policy")
		s.DeleteJob("a")
		Eventually(policies).Should(BeEmpty(), "nothing is left behind")
	})
})

package trainingpod

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestNetworkPolicyLetsWorkersOfTheJobInAndNobodyElse(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	policy := b.NetworkPolicy()
	g.Expect(policy.Name).To(MatchRegexp(`^`+b.Job.Name+`-isolated-[0-9a-f]{8}$`), "it cannot be guessed before the job exists")
	g.Expect(metav1.IsControlledBy(policy, b.Job)).To(BeTrue(), "it goes with the job")
	g.Expect(policy.Spec.PolicyTypes).To(HaveExactElements(BeEquivalentTo("Ingress")), "what goes out is free")
	g.Expect(policy.Spec.Ingress).To(HaveLen(1))
	g.Expect(policy.Spec.Ingress[0].Ports).To(BeEmpty(), "NCCL chooses its ports")
	g.Expect(policy.Spec.Ingress[0].From).To(HaveLen(1))
	peer := policy.Spec.Ingress[0].From[0]
	g.Expect(peer.NamespaceSelector).To(BeNil(), "workers are in the job's namespace")
	for _, selector := range []*metav1.LabelSelector{&policy.Spec.PodSelector, peer.PodSelector} {
		selects, err := metav1.LabelSelectorAsSelector(selector)
		g.Expect(err).NotTo(HaveOccurred())
		for i := range int32(4) {
			g.Expect(selects.Matches(labels.Set(b.NewPod(i).Labels))).To(BeTrue(), "worker %d", i)
		}
		other := blueprint()
		other.Job.Name = "other"
		g.Expect(selects.Matches(labels.Set(other.NewPod(0).Labels))).To(BeFalse(), "another job's worker")
		g.Expect(selects.Matches(labels.Set{})).To(BeFalse(), "any pod")
	}
}

package integration

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("A node at fault", func() {
	It("that rejects a worker costs its job no restart, and is avoided", func() {
		s := newScenario("rejected", 2, 2, 2)
		s.Submit(s.Job("a").Range(2, 2).Manual())
		Eventually(s.Workers("a", testutil.Bound)).Should(HaveLen(2), "A is placed")
		makeReady(s, "a", 0)
		makeReady(s, "a", 1)
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")

		s.DeleteWorker("a", 1)
		Eventually(s.Fetch("a")).Should(testutil.HaveRestarts(1), "somebody deleted a worker")
		var nodes []string
		for n := 1; n <= 2; n++ {
			alive := func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil }
			Eventually(s.Workers("a", testutil.Bound, alive)).Should(Equal([]int{1}), "worker 1 is placed, time %d", n)
			nodes = append(nodes, s.Worker("a", 1).Spec.NodeName)
			reject(s, "a", 1, "UnexpectedAdmissionError", "Allocate failed due to no healthy devices present")
			Eventually(s.Fetch("a")).Should(HaveField("Status.AvoidedNodes", HaveLen(n)), "node %s is avoided", nodes[n-1])
		}
		Eventually(s.Workers("a", testutil.Bound, testutil.Running)).Should(Equal([]int{0}), "the second back-off passes")
		third := func(p *corev1.Pod) bool { return p.Name == "a-worker-1" && !slices.Contains(nodes, p.Spec.NodeName) }
		Eventually(s.Workers("a", testutil.Bound, third)).Should(Equal([]int{1}), "the third node is neither of the two")
		Expect(nodes[0]).NotTo(Equal(nodes[1]), "nor was the second the first")
		Expect(s.Read("a")).To(And(testutil.HaveRestarts(1), testutil.HaveReason(v1beta1.ReasonRecovering),
			HaveField("Status.Message", ContainSubstring("rejected worker 1 (UnexpectedAdmissionError): Allocate failed"))))
		Expect(s.Events(s.Read("a"))).To(ContainElement(HavePrefix("NodeRejected: Node " + nodes[1] + " rejected worker 1")))
		makeReady(s, "a", 1)
		Eventually(s.Fetch("a")).Should(And(testutil.Train(2), testutil.HaveRestarts(1)), "A trains on")
	})

	It("is shunned by others and told of once workers of two owners were rejected there", func() {
		s, other := newScenario("suspect", 2, 2), newScenario("suspect-b")
		bad := s.Node(0)
		// No webhook checks owners here, so that each namespace is one.
		for _, of := range []*testutil.Scenario{s, other} {
			for n := range 2 {
				rejectOn(of, s.Namespace, bad, fmt.Sprint("a", n), func(o client.Object) error { return s.Client.Create(s.Context(), o) })
			}
		}
		Eventually(suspicions(s, bad)).Should(ConsistOf(And(ContainSubstring("Workers of 2 owners and 4 tasks"),
			ContainSubstring("kubectl taint node "+bad+" tideline.io/suspect=failures:NoSchedule"))), "the administrator is told")

		s.Submit(s.Job("b").Range(1, 1))
		Eventually(s.Fetch("b")).Should(testutil.Train(1), "B trains")
		Expect(s.Worker("b", 0).Spec.NodeName).To(Equal(s.Node(1)), "elsewhere")
		s.Submit(s.Job("c").Range(2, 2))
		Eventually(s.Fetch("c")).Should(testutil.Train(2), "C needs room on both, and has it")
	})

	It("gets the taint of suspects from the operator, which may change no more of it", func() {
		s := newScenario("taints", 1)
		grant(s, "node-taints")
		operator, err := s.As("system:serviceaccount:tideline-system:tideline-controller-manager")
		Expect(err).NotTo(HaveOccurred(), "the operator's account is connected")
		change := func(patch string) error {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Node(0)}}
			return operator.Patch(s.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch)))
		}
		refused := MatchError(ContainSubstring("changes no more of a node than the taint tideline.io/suspect"))
		tries := 0
		Eventually(func() error {
			tries++
			return change(fmt.Sprintf(`{"metadata":{"labels":{"by-the-operator":"%d"}}}`, tries))
		}).Should(refused, "the policy is in effect")
		Expect(change(`{"metadata":{"annotations":{"a":"b"}}}`)).To(refused)
		Expect(change(`{"spec":{"unschedulable":true}}`)).To(refused)
		Expect(change(`{"spec":{"taints":[{"key":"other","effect":"NoExecute"}]}}`)).To(refused)
		Expect(change(`{"spec":{"taints":[{"key":"tideline.io/suspect","value":"failures","effect":"NoSchedule"}]}}`)).To(Succeed())
	})

	It("that does not answer is named, and its pods are deleted by force if the user wants that", func() {
		s := newScenario("silent", 1, 1, 1)
		s.Submit(s.Job("a").Range(2, 2))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		dead := s.Worker("a", 1)
		silence(s, dead.Spec.NodeName, time.Now())
		loseNode(s, "a", 1)
		Eventually(s.Fetch("a")).Should(And(testutil.HaveReason(v1beta1.ReasonNodeUnreachable), testutil.HaveRestarts(0),
			HaveField("Status.Message", ContainSubstring(fmt.Sprintf("Node %s has not answered since", dead.Spec.NodeName)))))
		Expect(s.Worker("a", 1).UID).To(Equal(dead.UID), "its name is taken")

		s.Patch(s.Read("a"), `{"spec":{"deadlines":{"forceDeleteSeconds":60}}}`)
		Eventually(s.Fetch("a")).Should(HaveField("Status.Message", ContainSubstring("deletes the pod by force at")))
		silence(s, dead.Spec.NodeName, time.Now().Add(-2*time.Minute))
		Eventually(s.Fetch("a")).Should(And(testutil.Train(2), testutil.HaveRestarts(0)), "A trains on")
		Expect(s.Worker("a", 1).UID).NotTo(Equal(dead.UID), "with a new worker")
	})
})

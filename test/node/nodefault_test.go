//go:build linux

package node_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/test/node"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Training on a real node that is at fault", func() {
	var s *testutil.Scenario
	BeforeEach(func() {
		s = shared.World.NewScenario(GinkgoT(), "train")
	})

	It("trains on when a device plugin fails, and counts no restart for a worker that the kubelet rejects", func() {
		a := train(s, "a", graceless)
		a.await(4)
		DeferCleanup(devices.Heal)
		devices.Fail(brokenDriver)
		s.DeleteWorker("a", 1)
		a.rejected(1, 1)
		a.avoids(1)
		a.await(3)
		Expect(s.Read("a")).To(testutil.HavePhase(v1beta1.PhaseRunning))
		a.avoidedLongEnough()
		a.rejected(1, 2)
		devices.Heal()
		a.avoids(1)
		a.avoidedLongEnough()
		a.await(4)
		Expect(s.Read("a")).To(testutil.HaveRestarts(1), "for the pod that was deleted, and for no rejection")
		lost, _ := a.lost()
		Expect(lost).To(BeNumerically("<=", interval))
		figures(a)
	})

	It("waits for a kubelet that died, counts no restart, and goes on from its checkpoint when it is back", func() {
		s.AddNode(0) // Where no node answers, Kubernetes takes that for its own fault, and evicts from none.
		a := train(s, "a", func(job *v1beta1.ElasticTrainingJob) {
			graceless(job)
			job.Spec.Template.Spec.Tolerations = []corev1.Toleration{
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
					TolerationSeconds: ptr.To[int64](5)},
			}
		})
		a.await(4)
		before := a.UIDs("a")
		Expect(machine.KillKubelet()).To(Succeed())
		died := time.Now()
		DeferCleanup(func() {
			if CurrentSpecReport().Failed() {
				_ = machine.StartKubelet() // for the specs after this one
			}
		})
		Eventually(s.Fetch("a")).WithTimeout(3 * time.Minute).Should(
			testutil.HaveCondition(v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNodeUnreachable))
		AddReportEntry(fmt.Sprintf("figures: the job said so %s after the kubelet died", time.Since(died).Round(time.Second)))
		Expect(testutil.Condition(s.Read("a"), v1beta1.ConditionReady).Message).To(
			HavePrefix("Node %s has not answered since ", node.Name))
		Eventually(s.Pods).WithArguments("a").Should(HaveEach(HaveField("DeletionTimestamp", Not(BeNil()))), "all have to leave")
		a.await(4) // The containers do not know.
		Expect(s.Read("a")).To(And(testutil.HavePhase(v1beta1.PhaseRunning), testutil.HaveRestarts(0)))
		Expect(machine.StartKubelet()).To(Succeed())
		a.again()
		a.renewed(before)
		Expect(s.Read("a")).To(testutil.HaveRestarts(0))
		Expect(s.Read("a").Status.AvoidedNodes).To(BeEmpty(), "the node rejected none")
		lost, _ := a.lost()
		Expect(lost).To(BeNumerically("<=", interval))
		figures(a)
	})
})

// brokenDriver is what a device plugin says that fails.
const brokenDriver = "the driver does not answer"

// rejected waits until the kubelet has rejected a worker so many times, and expects that the job says so.
func (t *training) rejected(index, times int) {
	GinkgoHelper()
	Eventually(t.Fetch(t.name)).WithTimeout(time.Minute).Should(HaveField("Status.AvoidedNodes", ConsistOf(And(
		HaveField("Name", node.Name), HaveField("Worker", BeEquivalentTo(index)), HaveField("Rejections", BeEquivalentTo(times)),
		HaveField("Reason", "UnexpectedAdmissionError"), HaveField("Message", ContainSubstring(brokenDriver)),
		HaveField("Until", Not(BeNil())),
	))))
	Eventually(t.Events).WithArguments(t.Read(t.name)).Should(ContainElement(HavePrefix(
		"NodeRejected: Node %s rejected worker %d (UnexpectedAdmissionError)", node.Name, index)))
}

// avoids waits until a worker was created anew that may not be placed on the node.
func (t *training) avoids(index int) {
	GinkgoHelper()
	Eventually(t.Pods).WithArguments(t.name).WithTimeout(time.Minute).Should(ContainElement(And(
		HaveField("Name", testutil.WorkerName(t.name, index)), HaveField("DeletionTimestamp", BeNil()),
		HaveField("Spec.NodeName", ""), WithTransform(avoidedBy, ConsistOf(node.Name)))))
}

func avoidedBy(pod corev1.Pod) []string { return podstate.AvoidedBy(&pod.Spec) }

// avoidedLongEnough is the test's clock: it says that the time of ten minutes or more is over for which the job avoids the node,
// as if it had passed. What follows is the operator's.
func (t *training) avoidedLongEnough() {
	GinkgoHelper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/status/avoidedNodes/0/until","value":%q}]`,
		time.Now().Add(-time.Second).UTC().Format(time.RFC3339))
	Expect(t.Client.Status().Patch(t.Context(), t.Read(t.name), client.RawPatch(types.JSONPatchType, []byte(patch)))).To(Succeed())
}

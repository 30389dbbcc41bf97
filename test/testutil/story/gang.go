// Package story has the scenarios that more than one suite shows: test/integration with an operator of its own, test/olm with the
// one that OLM installs.
package story

import (
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// SeveralCycles is longer than several cycles of Volcano's scheduler, which has one a second: what has not happened within this
// time was decided against several times.
const SeveralCycles = 5 * time.Second

// GangIsPlacedWhole is scenario 1, on one node of three GPUs: a gang of four is not placed in part, says why it waits, and is
// placed all at once when a slot appears.
func GangIsPlacedWhole(s *testutil.Scenario) {
	ginkgo.GinkgoHelper()
	s.Submit(s.Job("a").Range(4, 6))
	gomega.Eventually(s.Fetch("a")).Should(gomega.And(
		testutil.Wait(v1beta1.ReasonNeverFits),
		testutil.HaveCondition(v1beta1.ConditionScheduled, metav1.ConditionFalse, v1beta1.ReasonNeverFits),
		testutil.HaveCondition(v1beta1.ConditionReconciling, metav1.ConditionTrue, v1beta1.ReasonNeverFits),
	), "the reason is on the job")
	gomega.Expect(s.Read("a").Status.Message).To(gomega.And(
		gomega.MatchRegexp(`^Place \d+ of \d+ in queue default, for the core of 4 workers `),
		gomega.ContainSubstring("(4 nvidia.com/gpu) as a whole. It does not fit even if nothing else runs. "+
			"At most 3 such workers would fit into 3 nvidia.com/gpu; short of 1 nvidia.com/gpu."),
	), "the message has the figures")
	gomega.Consistently(s.Workers("a", testutil.Bound)).WithTimeout(SeveralCycles).Should(gomega.BeEmpty(),
		"three slots do not do for four")

	appeared := time.Now()
	gomega.Expect(s.SetGPUs(s.Context(), s.Node(0), 4)).To(gomega.Succeed(), "a slot appears")
	gomega.Eventually(s.Fetch("a")).Should(testutil.Train(4), "the core runs")
	bindings, err := s.Audit.Select(testutil.Doing("create", "pods/binding"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the audit log is read")
	gomega.Expect(bindings).To(gomega.HaveLen(4), "each core worker was placed once, and nobody before the slot appeared")
	gomega.Expect(bindings[0].Received).To(gomega.BeTemporally(">", appeared), "nobody was placed before the slot appeared")
	gomega.Expect(bindings[3].Received).To(gomega.BeTemporally("~", bindings[0].Received, 2*time.Second),
		"all were placed at once")
}

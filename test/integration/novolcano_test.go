package integration

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// On a cluster of its own; late, because the specs that take longest come first and leave room at the end.
var _ = Describe("Without Volcano", SpecPriority(-1), func() {
	It("the operator says so on every job, and once in its log, and goes on when Volcano is installed", func(ctx SpecContext) {
		in := suite.Own(ctx, cluster.Options{GPUNodes: -1, NoVolcano: true})
		s := in.NewScenario(GinkgoT(), "novolcano", 4)
		said := func(words string) func() (int, error) {
			return func() (int, error) {
				log, err := in.Operator.Log()
				return strings.Count(string(log), words), err
			}
		}
		s.Submit(s.Job("a").Range(1, 2), s.Job("b").Range(2, 2))
		for _, job := range []string{"a", "b"} {
			Eventually(s.Fetch(job)).Should(And(
				testutil.Wait(v1alpha1.ReasonVolcanoMissing),
				testutil.HaveCondition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonVolcanoMissing),
				testutil.HaveCondition(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonVolcanoMissing),
			), "job %s says so", job)
			Expect(s.Read(job).Status.Message).To(Equal("The API server does not serve PodGroup (scheduling.volcano.sh/v1beta1) and "+
				"Queue (scheduling.volcano.sh/v1beta1): install Volcano; the job goes on by itself then."), "and what to do")
		}
		// The operator asks every 5 s whether Volcano is there.
		Consistently(said("Kinds are missing")).WithTimeout(12*time.Second).Should(Equal(1), "the log says it once")
		Expect(s.Workers("a")()).To(BeEmpty(), "nothing is created meanwhile")

		Expect(in.Cluster.InstallVolcano(ctx)).To(Succeed(), "Volcano is installed")
		for _, job := range []string{"a", "b"} {
			Eventually(s.Fetch(job)).Should(testutil.Train(2), "job %s goes on", job)
		}
		Expect(said("Kinds are missing")()).To(Equal(1), "the log says it no second time")
		Expect(said("All kinds are served now")()).To(Equal(1), "and that it goes on, once")
	})
})

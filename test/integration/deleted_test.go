package integration

import (
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/testutil"
)

// Serial, because the garbage collector is one for all specs.
var _ = Describe("A job that is deleted", Serial, func() {
	It("leaves its GPUs to others at once, however long the garbage collector takes", func() {
		s := newScenario("deleted", 4)
		s.Submit(s.Job("a").Range(2, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "it trains, with surplus")
		collector := shared.Installation().Cluster.Processes()["kube-controller-manager"]
		Expect(syscall.Kill(collector, syscall.SIGSTOP)).To(Succeed(), "the garbage collector takes long")
		DeferCleanup(func() error { return syscall.Kill(collector, syscall.SIGCONT) })

		s.DeleteJob("a")
		s.Submit(s.Job("b").Range(4, 4))
		Eventually(s.Fetch("b")).Should(testutil.Train(4), "another job has them")
		Eventually(s.Remains).ShouldNot(ContainElement(MatchRegexp(`^(Pod|PodGroup) a\b`)), "neither pods nor PodGroups are left")
	})

	It("leaves its pods as they are where its user wants to keep them", func() {
		s := newScenario("orphans", 2)
		s.Submit(s.Job("a").Range(2, 2))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "it trains")
		Expect(s.Client.Delete(s.Context(), s.Read("a"), client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(func() error {
			_, err := s.Fetch("a")()
			return err
		}).Should(MatchError(apierrors.IsNotFound, "IsNotFound"), "it is gone")
		Consistently(s.Remains).WithTimeout(severalCycles).Should(ContainElements("Pod a-worker-0", "Pod a-worker-1", "PodGroup a"))
	})
})

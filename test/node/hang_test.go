//go:build linux

package node_test

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// tellsEvery is how often the example tells Tideline how far it is, at most.
const tellsEvery = 10 * time.Second

// followed has the operator follow what trainings say.
func followed(s *testutil.Scenario) {
	GinkgoHelper()
	component, err := testutil.Manifests(s.Context(), "components/training-progress/*.yaml")
	Expect(err).NotTo(HaveOccurred(), "the component is read")
	for _, o := range component {
		if err := s.Client.Create(s.Context(), o); !apierrors.IsAlreadyExists(err) {
			Expect(err).NotTo(HaveOccurred(), "the component is applied")
		}
	}
}

// watching has a job act on a hang.
func watching(policy v1beta1.StallPolicy) func(*v1beta1.ElasticTrainingJob) {
	return func(job *v1beta1.ElasticTrainingJob) {
		graceless(job)
		job.Spec.Progress = &v1beta1.JobProgress{Stall: v1beta1.Stall{Factor: 3, Policy: policy}}
	}
}

// trainer is on the command line of the process that trains in a worker, and not on that of torchrun, which started it.
const trainer = "-u /train/train.py"

// signal sends a signal to the process that trains in worker 1.
func (t *training) signal(number syscall.Signal) {
	GinkgoHelper()
	Expect(machine.Signal(t.Worker(t.name, 1).Status.ContainerStatuses[0].ContainerID, trainer, number)).To(Succeed())
}

// hang stops the process that trains in worker 1, once enough was said that the usual pace is known, and returns when.
func (t *training) hang() time.Time {
	GinkgoHelper()
	heard := func() (count int, err error) {
		lines, err := machine.Logs(t.Worker(t.name, 0), "trainer")
		for _, line := range lines {
			if strings.HasPrefix(line, "tideline: ") {
				count++
			}
		}
		return count, err
	}
	Eventually(heard).WithTimeout(3*time.Minute).Should(BeNumerically(">=", 30), "the operator knows the pace")
	t.signal(syscall.SIGSTOP)
	since := time.Now()
	t.observe()
	return since
}

var _ = Describe("A training of which a rank hangs on a real node", func() {
	var s *testutil.Scenario
	BeforeEach(func() {
		s = shared.World.NewScenario(GinkgoT(), "hang")
		followed(s)
	})
	// within is how soon it must be known: three times the usual line, and a minute.
	const within = 3*tellsEvery + time.Minute

	It("is told of, with the step at which it stopped, until it goes on", func() {
		a := train(s, "a", watching(v1beta1.StallTell))
		a.await(4)
		since := a.hang()
		Eventually(s.Fetch("a")).WithTimeout(within).Should(testutil.BeStalled(v1beta1.ReasonNoSteps))
		AddReportEntry(fmt.Sprintf("figures: told %s after a rank stopped", time.Since(since).Round(time.Second)))
		Eventually(s.Events).WithArguments(s.Read("a")).Should(ContainElement(HavePrefix("NoSteps: ")))
		a.signal(syscall.SIGCONT)
		Eventually(s.Fetch("a")).WithTimeout(time.Minute).Should(And(testutil.Train(4), testutil.HaveRestarts(0)), "it goes on")
		lost, _ := a.lost()
		Expect(lost).To(BeZero())
		figures(a)
	})

	It("starts anew from its checkpoint, where its policy says so", func() {
		a := train(s, "a", watching(v1beta1.StallRestart))
		a.await(4)
		before := a.UIDs("a")
		since := a.hang()
		Eventually(s.Fetch("a")).WithTimeout(within).Should(testutil.HaveRestarts(1))
		AddReportEntry(fmt.Sprintf("figures: started anew %s after a rank stopped", time.Since(since).Round(time.Second)))
		a.await(4)
		a.renewed(before)
		Expect(s.Read("a")).To(testutil.HaveRestarts(1))
		lost, _ := a.lost()
		Expect(lost).To(BeNumerically("<=", interval))
		figures(a)
	})
})

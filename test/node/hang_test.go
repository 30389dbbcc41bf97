//go:build linux

package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/node"
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

var _ = Describe("A training with a rank that hangs on a real node", func() {
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

// slowTraining is a training whose worker 1 takes twice as long as the others for its own part of each step. It uses the
// files of docs/examples/progress as they are.
const slowTraining = `
import sys, time
sys.path.insert(0, "/progress")
import torch
import torch.distributed as dist
from stragglers import Stragglers
from tideline_progress import Progress
dist.init_process_group("gloo")
slow, progress, step = Stragglers(every=5), Progress(every=1.0), 0
progress.start()
while True:
    step += 1
    with slow.own_part():
        time.sleep(0.2 if slow.worker == 1 else 0.1)
    dist.all_reduce(torch.zeros(1))
    progress.step(step, 1.0, **slow.compare(step))
`

var _ = Describe("A training with a slow rank on a real node", func() {
	It("names the worker, and its node", func() {
		s := shared.World.NewScenario(GinkgoT(), "slow")
		followed(s)
		programs := &corev1.ConfigMap{Data: map[string]string{"train.py": slowTraining}}
		programs.Namespace, programs.Name = s.Namespace, "programs"
		for _, file := range []string{"stragglers.py", "tideline_progress.py"} {
			content, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "progress", file))
			Expect(err).NotTo(HaveOccurred())
			programs.Data[file] = string(content)
		}
		s.Create(programs)
		train(s, "a", func(job *v1beta1.ElasticTrainingJob) {
			graceless(job)
			job.Spec.MinReplicas, job.Spec.MaxReplicas = 3, 3
			job.Spec.Progress = &v1beta1.JobProgress{Stall: v1beta1.Stall{Factor: 3, Policy: v1beta1.StallTell}}
			pod := &job.Spec.Template.Spec
			pod.Containers[0].Command, pod.Containers[0].Args = []string{"torchrun", "/progress/train.py"}, nil
			pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "programs", MountPath: "/progress"}}
			pod.Volumes = []corev1.Volume{{Name: "programs", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: programs.Name},
			}}}}
		})
		Eventually(s.Fetch("a")).WithTimeout(4 * time.Minute).Should(HaveField("Status.Training", And(Not(BeNil()),
			HaveField("Straggler", And(Not(BeNil()), HaveField("Worker", BeEquivalentTo(1)), HaveField("Node", node.Name))))))
		Eventually(s.Events).WithArguments(s.Read("a")).Should(ContainElement(HavePrefix("SlowWorker: ")))
	})
})

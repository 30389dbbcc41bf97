//go:build linux

package node_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// figures are what the table of docs/decisions/0038-real-node.md says of a scenario.
func figures(t *training) {
	GinkgoHelper()
	lost, out := t.lost()
	job := t.Read(t.name)
	AddReportEntry(fmt.Sprintf("figures: %s | steps lost %d | longest time without a step %s | restarts %d",
		CurrentSpecReport().LeafNodeText, lost, out, job.Status.Restarts))
}

// gang is another job that wants so many workers and trains for long.
func gang(s *testutil.Scenario, workers int32, tier string) *training {
	GinkgoHelper()
	return train(s, "newcomer", func(job *v1beta1.ElasticTrainingJob) {
		graceless(job)
		job.Spec.MinReplicas, job.Spec.MaxReplicas, job.Spec.Tier = workers, workers, tier
	})
}

// renewed expects that all workers are others than before.
func (t *training) renewed(before map[int]types.UID) {
	GinkgoHelper()
	for i, uid := range t.UIDs(t.name) {
		Expect(uid).NotTo(Equal(before[i]), "worker %d is of a new attempt", i)
	}
}

// running waits for workers of a job to run, and returns after how long they did since it was created.
func (t *training) running(workers int) time.Duration {
	GinkgoHelper()
	Eventually(t.Workers(t.name, testutil.Running)).WithTimeout(2 * time.Minute).Should(HaveLen(workers))
	return time.Since(t.Read(t.name).CreationTimestamp.Time)
}

var _ = Describe("Training on a real node", func() {
	var s *testutil.Scenario
	BeforeEach(func() {
		s = shared.World.NewScenario(GinkgoT(), "train")
	})

	It("trains to the end", func() {
		a := train(s, "a", func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Template.Spec.Containers[0].Args = append(args(20_000), "--step-seconds=0", "--checkpoint-steps=20")
		})
		Eventually(s.Fetch("a")).WithTimeout(3 * time.Minute).Should(HaveField("Status.Phase", v1beta1.PhaseSucceeded))
		steps := a.steps()
		Expect(steps[len(steps)-1].Loss).To(BeNumerically("<", steps[1].Loss/2), "it has learned")
		Expect(s.Read("a").Status.Restarts).To(BeZero())
		figures(a)
	})

	It("gives way to a gang within seconds, and grows back", func() {
		a := train(s, "a", graceless)
		a.await(4)
		core := a.core()
		b := gang(s, 2, "")
		took := b.running(2)
		AddReportEntry(fmt.Sprintf("figures: the newcomer ran %s after its creation", took.Round(100*time.Millisecond)))
		Expect(took).To(BeNumerically("<=", 10*time.Second))
		a.await(2)
		b.await(2)
		s.DeleteJob(b.name)
		a.await(4)
		Expect(a.core()).To(Equal(core), "nobody of the core was created anew")
		a.followsWorld(2, 4)
		Expect(s.Read("a").Status.Restarts).To(BeZero(), "giving way is no restart")
		lost, _ := a.lost()
		Expect(lost).To(BeNumerically("<=", interval))
		figures(a)
	})

	It("takes places that become free one after another in a few steps", func() {
		const most = 8
		DeferCleanup(func(ctx SpecContext) { resize(ctx, gpus) })
		resize(s.Context(), 2)
		a := train(s, "a", func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Checkpoint = v1beta1.Checkpoint{}
			job.Spec.MaxReplicas = most
			job.Spec.Elasticity.Growth.CooldownSeconds = ptr.To[int32](30)
			job.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("50m")
		})
		a.await(2)
		slots := 2
		Consistently(func() error {
			slots++
			devices.Resize(min(slots, most))
			return nil
		}).WithTimeout(30 * time.Second).WithPolling(5 * time.Second).Should(Succeed())
		a.await(most)
		sizes := 0
		for _, l := range a.steps() {
			if l.Event == "start" {
				sizes++
			}
		}
		Expect(sizes).To(BeNumerically("<=", 1+4), "the first start, and four changes of size for six places")
		Expect(s.Read("a").Status.Restarts).To(BeZero(), "growing is no restart")
		lost, _ := a.lost()
		Expect(lost).To(BeNumerically("<=", interval))
		figures(a)
	})

	It("counts one restart when worker 0's process is killed, and keeps all pods", func() {
		a := train(s, "a", graceless)
		a.await(4)
		before := a.UIDs("a")
		Expect(machine.Kill(a.Worker("a", 0).Status.ContainerStatuses[0].ContainerID, "torchrun")).To(Succeed())
		a.again()
		Expect(a.UIDs("a")).To(Equal(before))
		Eventually(s.Fetch("a")).Should(HaveField("Status.Restarts", BeEquivalentTo(1)), "once for the job, not for each container")
		lost, _ := a.lost()
		Expect(lost).To(BeNumerically("<=", interval))
		figures(a)
	})

	It("creates worker 0 anew when its pod is deleted, and keeps the others", func() {
		a := train(s, "a", graceless)
		a.await(4)
		before := a.UIDs("a")
		s.DeleteWorker("a", 0)
		a.again()
		after := a.UIDs("a")
		Expect(after[0]).NotTo(Equal(before[0]))
		before[0] = after[0]
		Expect(after).To(Equal(before))
		Eventually(s.Fetch("a")).Should(HaveField("Status.Restarts", BeEquivalentTo(1)))
		lost, _ := a.lost()
		Expect(lost).To(BeNumerically("<=", interval))
		figures(a)
	})

	It("gives a lost core worker the place of surplus where there is no other", func() {
		DeferCleanup(func(ctx SpecContext) { resize(ctx, gpus) })
		a := train(s, "a", graceless)
		a.await(4)
		lost := a.UIDs("a")[1]
		resize(s.Context(), 3)
		s.DeleteWorker("a", 1)
		Eventually(func(g Gomega) {
			g.Expect(s.Workers("a", testutil.Running)()).To(And(HaveLen(3), ContainElements(0, 1)))
			g.Expect(a.UIDs("a")[1]).NotTo(Equal(lost))
		}).WithTimeout(2*time.Minute).Should(Succeed(), "it was created anew, and surplus is gone")
		a.await(3)
		Expect(s.Read("a")).To(testutil.HaveRestarts(1), "the surplus that left for it is no loss")
		again, _ := a.lost()
		Expect(again).To(BeNumerically("<=", interval))
		figures(a)
	})

	It("runs a role beside torchrun, which does not join it and may be lost", func() {
		const evaluator = `
import signal, sys, time, torch
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
while True:
    try:
        print("step", torch.load("/checkpoints/last.pt", map_location="cpu")["step"], flush=True)
    except FileNotFoundError:
        pass
    time.sleep(1)`
		a := train(s, "a", func(job *v1beta1.ElasticTrainingJob) {
			graceless(job)
			job.Spec.MinReplicas, job.Spec.MaxReplicas = 3, 4
			job.Spec.Roles = []v1beta1.JobRole{{
				Name: "evaluator", Replicas: 1, Command: []string{"python3", "-c", evaluator},
			}}
		})
		a.await(3)
		evaluates := func() *corev1.Pod { return testutil.Get(s, &corev1.Pod{}, "a-evaluator-1") }
		heard := func() ([]string, error) { return machine.Logs(evaluates(), "trainer") }
		Eventually(heard).WithTimeout(time.Minute).Should(ContainElement(HavePrefix("step ")), "it reads what the others save")
		core, before := a.UIDs("a")[0], evaluates().UID
		s.Delete(evaluates())
		Eventually(func() (types.UID, error) {
			pod := &corev1.Pod{}
			err := s.Client.Get(s.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "a-evaluator-1"}, pod)
			return pod.UID, client.IgnoreNotFound(err)
		}).WithTimeout(time.Minute).Should(And(Not(BeEmpty()), Not(Equal(before))), "it is created anew")
		Eventually(heard).WithTimeout(time.Minute).Should(ContainElement(HavePrefix("step ")))
		a.await(3)
		Expect(a.UIDs("a")[0]).To(Equal(core), "and no other is")
		again, _ := a.lost()
		Expect(again).To(BeZero(), "the training did not notice")
		figures(a)
	})

	It("lets surplus go at once that is still in rendezvous", func() {
		a := train(s, "a", graceless)
		a.running(4)
		core := a.core()
		b := gang(s, 2, "")
		took := b.running(2)
		Expect(took).To(BeNumerically("<=", 10*time.Second), "the newcomer does not wait for a grace period")
		AddReportEntry(fmt.Sprintf("figures: the newcomer ran %s after its creation", took.Round(100*time.Millisecond)))
		a.await(2)
		b.await(2)
		Expect(a.steps()).NotTo(ContainElement(HaveField("World", 4)), "the surplus never joined")
		Expect(a.core()).To(Equal(core))
		Expect(s.Read("a").Status.Restarts).To(BeZero())
		lost, _ := a.lost()
		Expect(lost).To(BeNumerically("<=", interval))
		figures(a)
	})

	It("goes on from its checkpoint after it was suspended", func() {
		a := train(s, "a", asking)
		a.await(4)
		before := a.UIDs("a")
		s.Patch(s.Read("a"), `{"spec":{"suspend":true}}`)
		a.gone()
		a.answered()
		s.Patch(s.Read("a"), `{"spec":{"suspend":false}}`)
		a.again()
		a.renewed(before)
		Expect(s.Read("a").Status.Restarts).To(BeZero())
		lost, _ := a.lost()
		Expect(lost).To(BeZero(), "the checkpoint was asked for, and saved")
		figures(a)
	})

	It("saves before workers leave that are told to", func() {
		a := train(s, "a", asking)
		a.await(4)
		core := a.core()
		s.Patch(s.Read("a"), `{"spec":{"maxReplicas":3}}`)
		a.await(3)
		a.answered()
		Expect(a.core()).To(Equal(core))
		Expect(s.Read("a").Status.Restarts).To(BeZero())
		lost, _ := a.lost()
		Expect(lost).To(BeZero())
		figures(a)
	})

	It("saves before Volcano evicts workers", func() {
		a := train(s, "a", asking)
		a.await(4)
		core := a.core()
		b := gang(s, 2, "")
		AddReportEntry(fmt.Sprintf("figures: the newcomer ran %s after its creation", b.running(2).Round(100*time.Millisecond)))
		a.await(2)
		b.await(2)
		a.answered()
		Expect(a.core()).To(Equal(core))
		Expect(s.Read("a").Status.Restarts).To(BeZero())
		lost, _ := a.lost()
		Expect(lost).To(BeZero())
		figures(a)
	})

	It("stops a gang whole for a more important one, and goes on after it", func() {
		a := train(s, "a", asking)
		a.await(4)
		before := a.UIDs("a")
		b := gang(s, 4, "main-traffic")
		a.gone()
		a.answered()
		b.await(4)
		Expect(s.Read("a").Status.Preemption).NotTo(BeNil())
		s.DeleteJob(b.name)
		a.again()
		a.renewed(before)
		Expect(s.Read("a").Status.Restarts).To(BeZero())
		lost, _ := a.lost()
		Expect(lost).To(BeZero(), "the checkpoint was asked for, and saved")
		figures(a)
	})

	It("trains on while no operator runs, gives way when one does, and ends what a killed one began", func() {
		a := train(s, "a", graceless)
		a.await(4)
		core := a.core()
		DeferCleanup(func(ctx SpecContext) {
			if CurrentSpecReport().Failed() {
				_ = shared.Operator().Start(ctx) // for the specs after this one
			}
		})
		shared.Operator().Kill()
		b := gang(s, 2, "")
		a.await(4)
		Expect(shared.Operator().Start(s.Context())).To(Succeed())
		Eventually(a.Workers("a", testutil.Running)).Should(HaveLen(2), "its surplus leaves")
		shared.Operator().Kill()
		b.await(2)
		a.await(2)
		s.DeleteJob(b.name)
		Expect(shared.Operator().Start(s.Context())).To(Succeed())
		a.await(4)
		Expect(a.core()).To(Equal(core))
		Expect(s.Read("a").Status.Restarts).To(BeZero())
		lost, _ := a.lost()
		Expect(lost).To(BeNumerically("<=", interval))
		figures(a)
	})

	It("fails fast when the script does", func() {
		train(s, "a", func(job *v1beta1.ElasticTrainingJob) {
			graceless(job)
			job.Spec.Template.Spec.Containers[0].Args = append(args(1_000), "--learning-rate=-1") // at which all of them fail
			job.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PET_MAX_RESTARTS", Value: "1"}}
		})
		Eventually(s.Fetch("a")).WithTimeout(5 * time.Minute).Should(HaveField("Status.Phase", v1beta1.PhaseFailed))
		Expect(s.Read("a").Status.Conditions).To(ContainElement(
			And(HaveField("Type", v1beta1.ConditionFailed), HaveField("Reason", v1beta1.ReasonSameFailureTwice),
				HaveField("Message", ContainSubstring("ValueError: Invalid learning rate: -1.0")))))
	})

	It("tries again with all workers, and fails, when worker 0 cannot save at the end", func() {
		train(s, "a", func(job *v1beta1.ElasticTrainingJob) {
			graceless(job)
			c := &job.Spec.Template.Spec.Containers[0]
			c.Args = append(args(1_000), "--checkpoint=/nowhere/last.pt") // It is saved once, at the end, by rank 0.
			c.Env = []corev1.EnvVar{{Name: "PET_MAX_RESTARTS", Value: "0"}}
		})
		// Each time torchrun may wait for five minutes in its exit barrier.
		Eventually(s.Fetch("a")).WithTimeout(13*time.Minute).Should(HaveField("Status.Phase", v1beta1.PhaseFailed),
			"worker 0 did not wait for others until its rendezvous timed out, twice")
		job := s.Read("a")
		Expect(job.Status.Conditions).To(ContainElement(And(
			HaveField("Type", v1beta1.ConditionFailed), HaveField("Reason", v1beta1.ReasonSameFailureTwice))))
		// It is chance whose container ends first: worker 0's, or that of one that says of worker 0 that it closed its connection.
		Expect(job.Status.Restarts).To(BeNumerically(">=", 2), "once for each time that all of them failed")
		Expect(job.Status.LastFailure.InPlace).To(BeTrue(), "nobody was created anew")
	})
})

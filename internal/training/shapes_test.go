package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// edit changes the job before anything is decided.
func (w *simulator) edit(change func(*v1beta1.ElasticTrainingJobSpec)) *simulator {
	change(&w.o.Job.Spec)
	return w
}

func plainBackend(s *v1beta1.ElasticTrainingJobSpec) { s.Framework.Type = v1beta1.FrameworkCustom }

func TestGPUsOfTheMasterAreItsOwn(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 3).edit(func(s *v1beta1.ElasticTrainingJobSpec) {
		s.Master = &v1beta1.Master{Resources: &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")},
		}}
	})
	w.settle()
	g.Expect(w.status().Message).To(ContainSubstring("5 nvidia.com/gpu"), "4 for worker 0 and one for the other")
	w.trains()
	g.Expect(w.status().Accelerators).To(Equal(int64(6)))
}

func TestHostsFollowMembership(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).edit(plainBackend).edit(func(s *v1beta1.ElasticTrainingJobSpec) {
		s.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{
			{Action: v1beta1.ActionRestartWorker, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodEvicted}},
		}}
	})
	w.step()
	g.Expect(w.last.WriteHosts).To(BeNil(), "the attempt is recorded first")
	w.step()
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{0, 1}))
	g.Expect(w.last.WriteHosts).NotTo(BeNil(), "with the pods, which need it")
	g.Expect(w.last.CreateSSHKeys).To(BeFalse())
	hosts := func() string { return w.o.Hosts.Data["hosts"] }
	g.Expect(hosts()).To(Equal("ctr-worker-0.ctr-workers\nctr-worker-1.ctr-workers\n"))

	w.trains()
	g.Expect(w.hostsWritten).To(Equal(2), "once for the core, once for the surplus that came together")
	g.Expect(hosts()).To(Equal("ctr-worker-0.ctr-workers\nctr-worker-1.ctr-workers\n" +
		"ctr-worker-2.ctr-workers\nctr-worker-3.ctr-workers\n"))

	w.evict(2).settle()
	g.Expect(hosts()).To(Equal("ctr-worker-0.ctr-workers\nctr-worker-1.ctr-workers\nctr-worker-3.ctr-workers\n"))
	w.deletePod(1).settle()
	g.Expect(hosts()).To(ContainSubstring("ctr-worker-1."), "a core worker comes back under its name")

	w.o.Hosts.Data["hosts"], w.o.Hosts.Digests["hosts"], w.o.Hosts.Digests["mine"] = "nonsense", "nonsense", "kept"
	w.settle()
	g.Expect(hosts()).To(HavePrefix("ctr-worker-0."), "it is restored")
	w.o.Hosts.Digests["mine"] = "kept"
	w.step()
	g.Expect(w.last.WriteHosts).To(BeNil(), "what others add is theirs")
}

func TestTorchrunNeedsNoHosts(t *testing.T) {
	w := newSimulator(t, 2, 4)
	w.trains()
	NewWithT(t).Expect(w.hostsWritten).To(BeZero())
}

func TestSSHKeysAreThereBeforeTheCore(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).edit(plainBackend).edit(func(s *v1beta1.ElasticTrainingJobSpec) {
		s.Framework.SSH = v1beta1.SSHKeyPair
	})
	w.step().step()
	g.Expect(w.last.CreateWorkers).NotTo(BeEmpty())
	g.Expect(w.last.CreateSSHKeys).To(BeTrue())
	w.run().settle()
	g.Expect(w.last.CreateSSHKeys).To(BeFalse())
	w.run().settle().deletePod(1).step()
	for len(w.last.CreateWorkers) == 0 && w.now.Before(w.status().LastFailure.Time.Add(time.Minute)) {
		w.pass(time.Second).step()
	}
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{0, 1}))
	g.Expect(w.last.CreateSSHKeys).To(BeTrue(), "it may have been lost as well")
}

func TestIsolatedJobsHaveTheirPolicyBeforeTheCore(t *testing.T) {
	for mode, want := range map[v1beta1.NetworkPolicy]bool{
		v1beta1.NetworkPolicyIsolated: true, v1beta1.NetworkPolicyNone: false, "": false,
	} {
		g := NewWithT(t)
		w := newSimulator(t, 2, 4).edit(func(s *v1beta1.ElasticTrainingJobSpec) { s.NetworkPolicy = mode })
		w.step()
		g.Expect(w.last.CreateNetworkPolicy).To(BeFalse(), "the attempt is recorded first")
		w.step()
		g.Expect(w.last.CreateWorkers).NotTo(BeEmpty())
		g.Expect(w.last.CreateNetworkPolicy).To(Equal(want), "%q", mode)
		w.run().settle().run().settle()
		g.Expect(w.last.CreateNetworkPolicy).To(BeFalse(), "at rest nothing is written")
	}
}

func accelerated(models ...string) func(*v1beta1.ElasticTrainingJobSpec) {
	return func(s *v1beta1.ElasticTrainingJobSpec) { s.Accelerator = &v1beta1.Accelerator{Models: models} }
}

func TestModelIsChosenAnewUntilSomethingIsPlaced(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).edit(accelerated("A100", "H100"))
	w.settle()
	g.Expect(w.status().Attempt.Model).To(Equal("A100"), "the first listed")
	g.Expect(w.status().Message).To(ContainSubstring("of model A100"))
	w.o.Verdict.Model = "A100"
	g.Expect(w.settle().status().Attempt.Number).To(Equal(int32(1)), "it is the best still")

	w.o.Verdict.Model = "H100"
	w.step()
	g.Expect(w.status().Attempt).To(HaveField("Model", "H100"))
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)))
	g.Expect(w.last.CreateWorkers).To(BeEmpty(), "it is in status before its first pod")
	w.settle()
	g.Expect(w.indices()).To(Equal([]int32{0, 1}))
	g.Expect(w.last.Blueprint.NewPod(0).Spec.Affinity.NodeAffinity).NotTo(BeNil())

	w.scale(6).settle()
	g.Expect(w.status().Attempt).To(HaveField("Model", "H100"), "another range keeps the model that fits")
	w.run(0)
	w.o.Verdict.Model = "A100"
	number := w.status().Attempt.Number
	g.Expect(w.settle().status().Attempt.Number).To(Equal(number), "worker 0 is placed")
	w.deletePod(0).pass(time.Minute).settle()
	g.Expect(w.status().Attempt).To(HaveField("Model", "H100"), "it ran, and its peers wait for it")
	w.o.Verdict.Model = ""
	w.suspend(true).settle().suspend(false)
	g.Expect(w.settle().status().Attempt).To(HaveField("Model", "H100"), "where it ran before")
}

func TestMixedModelsAreNotChosen(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).edit(accelerated("A100", "H100"))
	w.o.Job.Spec.Accelerator.Mixing = v1beta1.MixingAllowed
	w.settle()
	g.Expect(w.status().Attempt.Model).To(BeEmpty())
	g.Expect(w.status().Message).To(ContainSubstring("of models A100, H100"))
}

func TestUnknownAcceleratorIsRefusedWithWords(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).edit(accelerated("v5e"))
	w.o.Job.Spec.Accelerator.ResourceName = "google.com/tpu"
	d := Plan(w.o, w.now)
	g.Expect(d.CreateWorkers).To(BeEmpty())
	g.Expect(d.Status.Reason).To(Equal(v1beta1.ReasonUnknownAccelerator))
	g.Expect(d.Status.Message).To(And(ContainSubstring(`"google.com/tpu"`), ContainSubstring("nvidia.com/gpu"),
		ContainSubstring("nodeSelector")))

	w.o.Config.Accelerators["google.com/tpu"] = "cloud.google.com/gke-tpu-accelerator"
	w.settle()
	g.Expect(w.status().Attempt.Model).To(Equal("v5e"), "the configuration says in which label it stands")
	placed := w.last.Blueprint.NewPod(0).Spec.Affinity
	g.Expect(placed).NotTo(BeNil(), "the model is required")
	terms := placed.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	g.Expect(terms[0].MatchExpressions[0].Key).To(Equal("cloud.google.com/gke-tpu-accelerator"))
}

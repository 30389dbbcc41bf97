package training

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// withServers gives the job of a simulator two parameter servers, workers 1 and 2, without torchrun.
func withServers(w *simulator) *simulator {
	plainBackend(&w.o.Job.Spec)
	w.o.Job.Spec.Roles = []v1beta1.JobRole{{Name: "ps", Replicas: 2}}
	return w
}

func TestRolesAreTheFirstOfTheCore(t *testing.T) {
	g := NewWithT(t)
	w := withServers(newSimulator(t, 4, 6)).trains()
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3, 4, 5}))
	g.Expect(w.last.Blueprint.NewPod(2).Name).To(HaveSuffix("-ps-2"))
	g.Expect(w.last.Blueprint.NewPod(5).Name).To(HaveSuffix("-worker-5"), "surplus is of the template")
	w.fail(1, "lost")
	w.settle()
	g.Expect(w.status().Attempt.Number).To(Equal(int32(2)), "the others knew the server that is gone")
	g.Expect(w.status().Restarts).To(Equal(int32(1)))
}

func TestRolesThatContradictTheJobStallIt(t *testing.T) {
	g := NewWithT(t)
	w := withServers(newSimulator(t, 2, 4)).settle()
	g.Expect(w.o.Workers).To(BeEmpty())
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/" + v1beta1.ReasonInvalidSpec))
	g.Expect(w.status().Message).To(ContainSubstring("spec.minReplicas: Invalid value: 2: must be more than the 2 workers of roles"))
	w.o.Job.Spec.MinReplicas = 3
	w.trains()
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3}))

	w.o.Job.Spec.MinReplicas = 2
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/"+v1beta1.ReasonInvalidSpec), "no attempt begins with that")
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3}), "and what trains, trains on")
}

func TestRolesAreNotAskedForWhatCannotBeCounted(t *testing.T) {
	g := NewWithT(t)
	w := withServers(newSimulator(t, 4, 4))
	w.o.Job.Spec.Roles[0].Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("-1")}}
	w.o.Job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("8")}
	w.settle()
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/" + v1beta1.ReasonRejected))
	g.Expect(w.status().Message).To(ContainSubstring("A worker of a role asks for -1 of cpu, which is negative"))
	g.Expect(w.last.CreateGroups).To(BeEmpty(), "though the sum is none")
}

func TestPodsOfAnotherRoleAreStraysThatHoldNoName(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 3, 3)
	w.o.Job.Spec.Roles = []v1beta1.JobRole{{Name: "evaluator", Replicas: 1}}
	w.trains()
	stray := podstate.Worker{Index: 2, Name: "ctr-old-2", UID: "stray", Misnamed: true, Phase: corev1.PodRunning, Scheduled: true}
	w.o.Workers = append(w.o.Workers, stray)
	w.step()
	g.Expect(w.last.DeletePods).To(ConsistOf(HaveField("Name", "ctr-old-2")))
	stray.Terminating = true
	created := false
	for range 3 { // the loss is noted, and the stray does not go
		w.deletePod(2)
		w.o.Workers = append(w.o.Workers, stray)
		w.step()
		created = created || slices.Contains(w.last.CreateWorkers, 2)
	}
	g.Expect(created).To(BeTrue(), "the name of worker 2 is free")
}

// An evaluator does not meet the others at worker 0's store, so that its success stands.
func TestSuccessOfARoleIsNotStranded(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4, 4)
	w.o.Job.Spec.Roles = []v1beta1.JobRole{{Name: "evaluator", Replicas: 1}}
	w.trains().restartInPlace(0).settle()
	w.succeed(1, 2).settle()
	g.Expect(w.worker(1).HasSucceeded()).To(BeTrue(), "it has evaluated to the end")
	g.Expect(w.worker(2).HasSucceeded()).To(BeFalse(), "this one is needed by the training that goes on")

	w = newSimulator(t, 4, 4)
	w.o.Job.Spec.Roles = []v1beta1.JobRole{{Name: "evaluator", Replicas: 1}}
	w.trains().restartInPlace(0).succeed(1).settle()
	g.Expect(w.worker(1).HasSucceeded()).To(BeTrue(), "also in the same moment")

	w = newSimulator(t, 4, 4)
	w.o.Job.Spec.Roles = []v1beta1.JobRole{{Name: "evaluator", Replicas: 1}}
	w.trains().succeed(1, 2).settle()
	w.restartInPlace(0).settle()
	g.Expect(w.worker(1).HasSucceeded()).To(BeTrue(), "nor is it called back")
	g.Expect(w.worker(2).HasSucceeded()).To(BeFalse(), "as this one is")
}

package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/story"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var _ = Describe("A running job makes room", func() {
	// The longest scenario comes first, so that the others run beside it.
	It("scenario 3 with the default cooldown of 300 s", suite.Long, SpecPriority(1), func() {
		s := newScenario("s3-default", 8)
		w := story.Fill(s, s.Job("a").With(func(a *v1beta1.ElasticTrainingJob) { a.Spec.Elasticity.Growth.CooldownSeconds = nil }))
		Expect(w.Read("a").Spec.Elasticity.Growth.CooldownSeconds).To(HaveValue(BeEquivalentTo(300)), "300 s is the default")
		w.Submit(w.Job("b").Range(2, 4))
		Eventually(w.Fetch("b")).Should(testutil.Train(2), "B starts with its minimum")
		w.Shrinks()
		w.SucceedAll("b")
		Eventually(w.Fetch("b")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "B ends long before the cooldown")
		w.GrowsBack(300 * time.Second)
	})

	It("scenario 3: A shrinks, keeps worker 0 and its minimum; B starts; B ends; A grows back", mainWay, func() {
		story.MakesRoom(newScenario("s3", 8))
	})

	It("scenario 3b: also for a job of a lower tier", suite.Long, mainWay, func() {
		s := newScenario("s3b", 4, 4)
		story.Fill(s, s.Job("a").Tier("main-traffic").Asks("1", "1Gi")).ComesAndGoes(s.Job("b").Tier("exploratory"))
	})

	It("scenario 3c: also for a job in another queue that is under its share", suite.Long, mainWay, func() {
		s, other := newScenario("s3c", 8), newScenario("s3c-other")
		for _, each := range []*testutil.Scenario{s, other} {
			each.UseQueue(each.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1, Deserved: gpus(4)}))
		}
		w := story.Fill(s, s.Job("a"))
		other.Submit(other.Job("b").Pool(s.Namespace).Range(2, 4).CompletionGrace(story.Cooldown))
		Eventually(other.Fetch("b")).Should(testutil.Train(2), "B starts with its minimum")
		w.Shrinks()
		other.SucceedAll("b")
		Eventually(other.Fetch("b")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "B ends")
		w.GrowsBack(story.Cooldown)
	})

	It("scenario 3d: also for a plain Volcano Job", suite.Long, mainWay, func() {
		s := newScenario("s3d", 8)
		w := story.Fill(s, s.Job("a"))
		job := volcanoJob(s)
		s.Create(job)
		Eventually(func() (int32, error) {
			return job.Status.Running, s.Client.Get(s.Context(), types.NamespacedName{Namespace: s.Namespace, Name: job.Name}, job)
		}).Should(BeEquivalentTo(2), "the Volcano Job runs")
		w.Shrinks()
		s.Delete(job)
		w.GrowsBack(story.Cooldown)
	})

	It("scenario 4: but not for a gang that needs more than all surplus", mainWay, func() {
		s := newScenario("s4", 8)
		w := story.Fill(s, s.Job("a"))
		s.Submit(s.Job("b").Range(7, 8))
		Eventually(s.Fetch("b")).Should(testutil.HaveReason(v1beta1.ReasonUnschedulable), "Volcano finds no room for B")
		Consistently(s.Workers("a", testutil.Running)).WithTimeout(severalCycles).Should(HaveLen(8), "nobody is evicted in vain")
		Expect(s.UIDs("a")).To(Equal(w.Before), "every worker of A keeps its pod")
		Expect(s.Audit.Select(testutil.Doing("delete", "pods"))).To(BeEmpty(), "no pod was deleted")
	})

	It("scenario 5: one eviction counts as no restart, and its index comes back after the cooldown", mainWay, func() {
		s := newScenario("s5", 4)
		s.Submit(s.Job("a").Range(2, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A fills the slots")
		before := s.UIDs("a")
		s.Submit(s.Job("b").Range(1, 1))
		Eventually(s.Fetch("b")).Should(testutil.Train(1), "B starts")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(3), testutil.HaveReason(v1beta1.ReasonCoolingDown)), "A gave way")
		gone := s.Read("a").Status.Elasticity
		Expect(gone.Evicted).To(HaveLen(1), "one worker gave way")
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "an eviction counts as no restart")
		Expect(s.Read("a").Status.LastFailure).To(BeNil(), "an eviction is no failure")
		evictions, err := s.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByVolcano)
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		Expect(evictions).To(HaveLen(1), "Volcano evicted exactly one")

		i := int(gone.Evicted[0])
		delete(before, i)
		s.SucceedAll("b")
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A grows back")
		story.CreatedAnew(s, i, gone.LastEvictionTime.Add(story.Cooldown))
		now := s.UIDs("a")
		delete(now, i)
		Expect(now).To(Equal(before), "the others keep their pods")
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "coming back is no failure")
	})

	It("scenario 5: several come back lowest index first", mainWay, func() {
		s := newScenario("s5-order", 8)
		w := story.Fill(s, s.Job("a"))
		for _, i := range []int{6, 2, 4} {
			s.Evict("a", i)
		}
		Eventually(s.Fetch("a")).Should(And(testutil.Train(5), testutil.HaveReason(v1beta1.ReasonCoolingDown)), "three gave way")
		gone := s.Read("a").Status.Elasticity
		Expect(gone.Evicted).To(Equal([]int32{2, 4, 6}), "their indices are remembered")
		Eventually(s.Fetch("a")).Should(testutil.Train(8), "they come back")
		anew, err := s.Audit.Select(testutil.Doing("create", "pods"), testutil.From(gone.LastEvictionTime.Time))
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		Expect(anew).To(ConsistOf(
			HaveField("Name", "a-worker-2"), HaveField("Name", "a-worker-4"), HaveField("Name", "a-worker-6")), "each once")
		Expect(anew[0].Name).To(Equal("a-worker-2"), "lowest index first, and the others together once the first was taken")
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "an eviction counts as no restart")
		for _, i := range []int{2, 4, 6} {
			delete(w.Before, i)
		}
		w.KeepsItsWorkers(s.Read("a"))
	})
})

func gpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{testutil.GPUResource: *resource.NewQuantity(n, resource.DecimalSI)}
}

// volcanoJob is a Volcano Job of two pods with one GPU each and of no particular priority.
func volcanoJob(s *testutil.Scenario) *batchv1alpha1.Job {
	pod := s.Job("plain").Obj().Spec.Template
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "plain"},
		Spec: batchv1alpha1.JobSpec{
			SchedulerName: "volcano", MinAvailable: 2,
			Tasks: []batchv1alpha1.TaskSpec{{Name: "task", Replicas: 2, Template: pod}},
		},
	}
}

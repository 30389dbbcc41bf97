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

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/testutil"
)

// giveWay is the story of scenario 3: A (2..8) fills eight slots, somebody with a gang of two arrives and starts, A shrinks to
// six and later grows back.
type giveWay struct {
	*testutil.Scenario
	a      *testutil.JobBuilder
	before map[int]types.UID
}

// fill has A fill the eight slots.
func fill(s *testutil.Scenario, a *testutil.JobBuilder) giveWay {
	GinkgoHelper()
	s.Submit(a.Range(2, 8))
	Eventually(s.Fetch("a")).Should(testutil.Train(8), "A fills the eight slots")
	return giveWay{s, a, s.UIDs("a")}
}

// shrinks checks that A gave way with two surplus workers and is otherwise undisturbed.
func (w giveWay) shrinks() {
	GinkgoHelper()
	Eventually(w.Fetch("a")).Should(And(testutil.Train(6), testutil.HaveReason(v1alpha1.ReasonCoolingDown)),
		"A gave way with two workers and says that it will not ask for them yet")
	a := w.Read("a")
	Expect(a).To(testutil.HaveRestarts(0), "giving way is no failure")
	Expect(a.Status.Elasticity.Evicted).To(And(HaveLen(2), HaveEach(BeNumerically(">=", 2))), "only surplus gave way")
	w.keepsItsWorkers(a)
}

// keepsItsWorkers checks that whoever did not give way still has the pod it had.
func (w giveWay) keepsItsWorkers(a *v1alpha1.ElasticTrainingJob) {
	GinkgoHelper()
	kept := map[int]types.UID{}
	for i, uid := range w.before {
		kept[i] = uid
	}
	if a.Status.Elasticity != nil {
		for _, i := range a.Status.Elasticity.Evicted {
			delete(kept, int(i))
		}
	}
	now := w.UIDs("a")
	for i, uid := range kept {
		Expect(now).To(HaveKeyWithValue(i, uid), "worker %d keeps its pod", i)
	}
}

// growsBack waits until A has eight workers again, and checks that the two that gave way were created anew after the cooldown
// and not before.
func (w giveWay) growsBack(cooldown time.Duration) {
	GinkgoHelper()
	gone := w.Read("a").Status.Elasticity
	Expect(gone.Evicted).To(HaveLen(2), "A remembers who gave way as long as the cooldown lasts")
	w.before = w.UIDs("a")
	Eventually(w.Fetch("a")).WithTimeout(cooldown+time.Minute).Should(testutil.Train(8), "A grows back")
	a := w.Read("a")
	Expect(a).To(testutil.HaveRestarts(0), "neither shrinking nor growing is a failure")
	for i, uid := range w.before {
		Expect(w.UIDs("a")).To(HaveKeyWithValue(i, uid), "worker %d keeps its pod while A grows", i)
	}
	for _, i := range gone.Evicted {
		w.createdAfter(int(i), gone.LastEvictionTime.Add(cooldown))
	}
}

// createdAfter checks that worker i of A was created twice: at first, and not before the cooldown had passed.
func (w giveWay) createdAfter(i int, end time.Time) {
	GinkgoHelper()
	creations, err := w.Audit.Select(testutil.Doing("create", "pods"), testutil.To(testutil.WorkerName("a", i)))
	Expect(err).NotTo(HaveOccurred(), "the audit log is read")
	Expect(creations).To(HaveLen(2), "worker %d was created anew once", i)
	Expect(creations[1].Received).To(BeTemporally(">=", end), "worker %d stayed away during the cooldown", i)
}

var _ = Describe("A running job makes room", func() {
	const cooldown = 10 * time.Second

	// comesAndGoes is scenario 3 from B's arrival on.
	comesAndGoes := func(w giveWay, b *testutil.JobBuilder, cooldown time.Duration) {
		GinkgoHelper()
		w.Submit(b.Range(2, 4).CompletionGrace(cooldown))
		Eventually(w.Fetch("b")).Should(testutil.Train(2), "B starts with its minimum")
		w.shrinks()
		Eventually(w.Fetch("b")).Should(testutil.HaveReason(v1alpha1.ReasonWaitingForRoom), "B says that it would grow")
		w.SucceedAll("b")
		Eventually(w.Fetch("b")).Should(testutil.HavePhase(v1alpha1.PhaseSucceeded), "B ends")
		w.growsBack(cooldown)
	}

	// The longest scenario comes first, so that the others run beside it.
	It("scenario 3 with the default cooldown of 300 s", SpecPriority(1), func() {
		s := newScenario("s3-default", 8)
		w := fill(s, s.Job("a").With(func(a *v1alpha1.ElasticTrainingJob) { a.Spec.Elasticity.CooldownSeconds = nil }))
		Expect(w.Read("a").Spec.Elasticity.CooldownSeconds).To(HaveValue(BeEquivalentTo(300)), "300 s is the default")
		w.Submit(w.Job("b").Range(2, 4))
		Eventually(w.Fetch("b")).Should(testutil.Train(2), "B starts with its minimum")
		w.shrinks()
		w.SucceedAll("b")
		Eventually(w.Fetch("b")).Should(testutil.HavePhase(v1alpha1.PhaseSucceeded), "B ends long before the cooldown")
		w.growsBack(300 * time.Second)
	})

	It("scenario 3: A shrinks, keeps worker 0 and its minimum; B starts; B ends; A grows back", func() {
		s := newScenario("s3", 8)
		comesAndGoes(fill(s, s.Job("a")), s.Job("b"), cooldown)
		story, err := s.Events(s.Read("a"))
		Expect(err).NotTo(HaveOccurred(), "events are read")
		Expect(story).To(ContainElement(And(
			HavePrefix("GaveWay: Gave way to a waiting gang: workers "), HaveSuffix("; 6 ready go on."))), "A's story tells it")
		for _, job := range []string{"a", "b"} {
			story, err := s.Events(s.Read(job))
			Expect(err).NotTo(HaveOccurred(), "events are read")
			Expect(len(story)).To(BeNumerically("<=", 6), "the story of %s is short: %q", job, story)
		}
		told, err := s.Audit.Select(testutil.ByOperator, testutil.Event)
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		Expect(len(told)).To(BeNumerically("<=", 12), "each event is written once")
	})

	It("scenario 3b: also for a job of a lower tier", func() {
		s := newScenario("s3b", 4, 4)
		comesAndGoes(fill(s, s.Job("a").Tier("main-traffic")), s.Job("b").Tier("exploratory"), cooldown)
	})

	It("scenario 3c: also for a job in another queue that is under its share", func() {
		s, other := newScenario("s3c", 8), newScenario("s3c-other")
		for _, each := range []*testutil.Scenario{s, other} {
			each.UseQueue(each.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1, Deserved: gpus(4)}))
		}
		w := fill(s, s.Job("a"))
		other.Submit(other.Job("b").Pool(s.Namespace).Range(2, 4).CompletionGrace(cooldown))
		Eventually(other.Fetch("b")).Should(testutil.Train(2), "B starts with its minimum")
		w.shrinks()
		other.SucceedAll("b")
		Eventually(other.Fetch("b")).Should(testutil.HavePhase(v1alpha1.PhaseSucceeded), "B ends")
		w.growsBack(cooldown)
	})

	It("scenario 3d: also for a plain Volcano Job", func() {
		s := newScenario("s3d", 8)
		w := fill(s, s.Job("a"))
		job := volcanoJob(s)
		s.Create(job)
		Eventually(func() (int32, error) {
			return job.Status.Running, s.Client.Get(s.Context(), types.NamespacedName{Namespace: s.Namespace, Name: job.Name}, job)
		}).Should(BeEquivalentTo(2), "the Volcano Job runs")
		w.shrinks()
		s.Delete(job)
		w.growsBack(cooldown)
	})

	It("scenario 4: but not for a gang that needs more than all surplus", func() {
		s := newScenario("s4", 8)
		w := fill(s, s.Job("a"))
		s.Submit(s.Job("b").Range(7, 8))
		Eventually(s.Fetch("b")).Should(testutil.HaveReason(v1alpha1.ReasonUnschedulable), "Volcano finds no room for B")
		Consistently(s.Workers("a", testutil.Running)).WithTimeout(severalCycles).Should(HaveLen(8), "nobody is evicted in vain")
		Expect(s.UIDs("a")).To(Equal(w.before), "every worker of A keeps its pod")
		Expect(s.Audit.Select(testutil.Doing("delete", "pods"))).To(BeEmpty(), "no pod was deleted")
	})

	It("scenario 5: one eviction counts as no restart, and its index comes back after the cooldown", func() {
		s := newScenario("s5", 4)
		s.Submit(s.Job("a").Range(2, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A fills the slots")
		before := s.UIDs("a")
		s.Submit(s.Job("b").Range(1, 1))
		Eventually(s.Fetch("b")).Should(testutil.Train(1), "B starts")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(3), testutil.HaveReason(v1alpha1.ReasonCoolingDown)), "A gave way")
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
		giveWay{Scenario: s}.createdAfter(i, gone.LastEvictionTime.Add(cooldown))
		now := s.UIDs("a")
		delete(now, i)
		Expect(now).To(Equal(before), "the others keep their pods")
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "coming back is no failure")
	})

	It("scenario 5: several come back lowest index first", func() {
		s := newScenario("s5-order", 8)
		w := fill(s, s.Job("a"))
		for _, i := range []int{6, 2, 4} {
			s.Evict("a", i)
		}
		Eventually(s.Fetch("a")).Should(And(testutil.Train(5), testutil.HaveReason(v1alpha1.ReasonCoolingDown)), "three gave way")
		gone := s.Read("a").Status.Elasticity
		Expect(gone.Evicted).To(Equal([]int32{2, 4, 6}), "their indices are remembered")
		Eventually(s.Fetch("a")).Should(testutil.Train(8), "they come back")
		anew, err := s.Audit.Select(testutil.Doing("create", "pods"), testutil.From(gone.LastEvictionTime.Time))
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		Expect(anew).To(HaveExactElements(
			HaveField("Name", "a-worker-2"), HaveField("Name", "a-worker-4"), HaveField("Name", "a-worker-6")), "lowest index first")
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "an eviction counts as no restart")
		for _, i := range []int{2, 4, 6} {
			delete(w.before, i)
		}
		w.keepsItsWorkers(s.Read("a"))
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

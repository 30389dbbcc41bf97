package pairs

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
)

const (
	cooldown = 8 * time.Second
	// several is time for several cycles of the scheduler, and for the operator to act where it is asked to: nobody starves longer.
	several = 6 * time.Second
)

// giveWay is the story of scenario 3: A (2..8) fills eight slots, B comes and A gives way, B ends and A grows back.
type giveWay struct {
	pair   testutil.Evicting
	a      *testutil.Scenario
	before map[int]types.UID
}

func begin(pair testutil.Evicting, s *testutil.Scenario, a *testutil.JobBuilder) giveWay {
	GinkgoHelper()
	s.Submit(a.Range(2, 8))
	Eventually(s.Fetch("a")).Should(testutil.Train(8), "A fills the eight slots")
	Expect(s.Read("a")).To(testutil.HaveCondition(v1beta1.ConditionSchedulerConfigured, metav1.ConditionTrue,
		v1beta1.ReasonConfigured), "%s let surplus give way", pair.Name)
	return giveWay{pair, s, s.UIDs("a")}
}

// gaveWay checks that A made room for so many: with surplus alone, on Volcano's word alone, and otherwise undisturbed. Actions by
// task evict as many as are needed; actions by gang evict all surplus of a job.
func (w giveWay) gaveWay(need int) {
	GinkgoHelper()
	left := need
	if w.pair == testutil.ByGang {
		left = 6
	}
	Eventually(w.a.Fetch("a")).Should(And(testutil.Train(8-left), testutil.HaveReason(v1beta1.ReasonCoolingDown)),
		"A gave way with %d workers", left)
	a := w.a.Read("a")
	Expect(a).To(testutil.HaveRestarts(0), "giving way is no failure")
	Expect(a.Status.LastFailure).To(BeNil(), "giving way is no failure")
	Expect(a.Status.Elasticity.Evicted).To(And(HaveLen(left), HaveEach(BeNumerically(">=", 2))), "only surplus gave way")
	Expect(w.a.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByVolcano)).To(HaveLen(left), "Volcano evicted them")
	Expect(w.a.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByOperator)).To(BeEmpty(), "the operator does not act")
	Expect(w.a.EvictedFor()).To(And(Not(BeEmpty()), HaveEach(Satisfy(w.pair.Evicted))), "by %s", w.pair.Name)
	for _, i := range a.Status.Elasticity.Evicted {
		delete(w.before, int(i))
	}
	now := w.a.UIDs("a")
	for i, uid := range w.before {
		Expect(now).To(HaveKeyWithValue(i, uid), "worker %d keeps its pod", i)
	}
}

// growsBack waits until A has all its workers again.
func (w giveWay) growsBack() {
	GinkgoHelper()
	Eventually(w.a.Fetch("a")).WithTimeout(cooldown+time.Minute).Should(testutil.Train(8), "A grows back")
	Expect(w.a.Read("a")).To(testutil.HaveRestarts(0), "neither shrinking nor growing is a failure")
	now := w.a.UIDs("a")
	for i, uid := range w.before {
		Expect(now).To(HaveKeyWithValue(i, uid), "worker %d keeps its pod", i)
	}
}

// keepsAll checks that for some time nobody is evicted.
func (w giveWay) keepsAll() {
	GinkgoHelper()
	Consistently(w.a.Workers("a", testutil.Running)).WithTimeout(several).Should(HaveLen(8), "nobody is evicted in vain")
	Expect(w.a.UIDs("a")).To(Equal(w.before), "every worker of A keeps its pod")
	Expect(w.a.Audit.Select(testutil.Doing("delete", "pods"))).To(BeEmpty(), "no pod was deleted")
}

var _ = Describe("A running job makes room", Serial, func() {
	for _, pair := range testutil.BothPairs {
		Context("by "+pair.Name, func() {
			BeforeEach(func(ctx SpecContext) { configure(ctx, pair) })
			giveWays(pair)
		})
	}
})

// giveWays are the scenarios of giving way that both pairs are held to.
func giveWays(pair testutil.Evicting) {
	start := func(s *testutil.Scenario, a *testutil.JobBuilder) giveWay {
		GinkgoHelper()
		return begin(pair, s, a.Cooldown(cooldown))
	}

	It("scenario 3: A shrinks, keeps worker 0 and its minimum; B starts; B ends; A grows back", func() {
		s := newScenario("pairs-s3", 8)
		w := start(s, s.Job("a"))
		s.Submit(s.Job("b").Range(2, 2).CompletionGrace(cooldown))
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "B starts")
		w.gaveWay(2)
		s.SucceedAll("b")
		Eventually(s.Fetch("b")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "B ends")
		w.growsBack()
	})

	It("scenario 3b: also for a job of a lower tier", func() {
		s := newScenario("pairs-s3b", 4, 4)
		w := start(s, s.Job("a").Tier("main-traffic").Asks("1", "1Gi"))
		s.Submit(s.Job("b").Tier("exploratory").Range(3, 3))
		Eventually(s.Fetch("b")).Should(testutil.Train(3), "B starts")
		w.gaveWay(3)
	})

	It("scenario 3d: also for a plain Volcano Job", func() {
		s := newScenario("pairs-s3d", 8)
		w := start(s, s.Job("a"))
		s.Create(volcanoJob(s, "plain", 2))
		Eventually(running(s, "plain")).Should(BeEquivalentTo(2), "the Volcano Job runs")
		w.gaveWay(2)
	})

	It("scenario 4: but not for a gang that needs more than all surplus", func() {
		s := newScenario("pairs-s4", 8)
		w := start(s, s.Job("a"))
		s.Submit(s.Job("b").Range(7, 7))
		Eventually(s.Fetch("b")).Should(testutil.HaveReason(v1beta1.ReasonUnschedulable), "Volcano finds no room for B")
		w.keepsAll()
	})

	It("and for a core that lost worker 0, whose place surplus may take", func() {
		s := newScenario("pairs-loss", 10)
		s.Submit(s.Job("b").Range(2, 2))
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "B trains")
		s.Submit(s.Job("a").Range(2, 12).Cooldown(cooldown))
		Eventually(s.Fetch("a")).Should(testutil.Train(8), "A fills the other slots, and four of its surplus wait")
		a, b := s.UIDs("a"), s.UIDs("b")
		s.DeleteWorker("b", 0)
		Eventually(s.Workers("b", testutil.Running)).Should(Equal([]int{0, 1}), "B has both workers again")
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "B trains")
		Expect(s.UIDs("b")).NotTo(HaveKeyWithValue(0, b[0]), "with another worker 0")
		Expect(s.UIDs("a")).To(And(HaveKeyWithValue(0, a[0]), HaveKeyWithValue(1, a[1])), "A keeps its core")
	})

	It("evicts nobody more while those leave that were evicted", func() {
		s := newScenario("pairs-leaving", 16)
		for _, job := range []string{"a", "c"} {
			s.Submit(s.Job(job).Range(2, 8).Cooldown(cooldown))
		}
		for _, job := range []string{"a", "c"} {
			Eventually(s.Fetch(job)).Should(testutil.Train(8), "%s fills its half", job)
			for i := 2; i < 8; i++ {
				s.Hold(job, i) // The simulated kubelet knows no grace period.
			}
		}
		left := 2
		if pair == testutil.ByGang {
			left = 6
		}
		told := func() ([]testutil.Request, error) {
			return s.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByVolcano)
		}
		s.Submit(s.Job("b").Range(2, 2))
		Eventually(told).Should(HaveLen(left), "Volcano evicts for B")
		Consistently(told).WithTimeout(several).Should(HaveLen(left), "and waits for those to leave")
		for _, job := range []string{"a", "c"} {
			for i := 2; i < 8; i++ {
				s.Release(job, i)
			}
		}
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "B starts once they have gone")
	})

	It("on the nodes that the gang may use; the pair by gang elsewhere too, if the younger job is there", func() {
		s, elsewhere := newScenario("pairs-kind", 8), newScenario("pairs-elsewhere", 8)
		w := start(s, s.Job("a"))
		elsewhere.Submit(elsewhere.Job("c").Range(2, 8).Cooldown(cooldown))
		Eventually(elsewhere.Fetch("c")).Should(testutil.Train(8), "C fills other nodes")
		s.Submit(s.Job("b").Range(2, 2))
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "B starts")
		w.gaveWay(2)
		inVain := 0
		if pair == testutil.ByGang {
			inVain = 6
		}
		Expect(elsewhere.Audit.Select(testutil.Doing("delete", "pods"), testutil.ByVolcano)).To(HaveLen(inVain), "of C so many left")
	})

	It("leaves gangs of others whole", func() {
		s := newScenario("pairs-others", 8)
		s.Create(volcanoJob(s, "others", 8))
		Eventually(running(s, "others")).Should(BeEquivalentTo(8), "the gang of others fills the eight slots")
		s.Submit(s.Job("b").Range(2, 2))
		Eventually(s.Fetch("b")).Should(testutil.HaveReason(v1beta1.ReasonUnschedulable), "Volcano finds no room for B")
		Consistently(running(s, "others")).WithTimeout(several).Should(BeEquivalentTo(8), "nobody leaves")
		Expect(s.Audit.Select(testutil.Doing("delete", "pods"))).To(BeEmpty(), "no pod was deleted")
	})

	betweenQueues(start)
}

// betweenQueues are those with two queues: A's, and another without nodes of its own.
func betweenQueues(start func(*testutil.Scenario, *testutil.JobBuilder) giveWay) {
	queues := func(name string, share int64) (s, other *testutil.Scenario) {
		GinkgoHelper()
		s, other = newScenario(name, 8), newScenario(name+"-other")
		deserved := map[*testutil.Scenario]int64{s: share, other: 4}
		for _, each := range []*testutil.Scenario{s, other} {
			each.UseQueue(each.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1, Deserved: corev1.ResourceList{
				testutil.GPUResource: *resource.NewQuantity(deserved[each], resource.DecimalSI),
			}}))
		}
		return s, other
	}

	It("scenario 3c: also for a job in another queue that is under its share", func() {
		s, other := queues("pairs-s3c", 2)
		w := start(s, s.Job("a"))
		other.Submit(other.Job("b").Pool(s.Namespace).Range(2, 2).CompletionGrace(cooldown))
		Eventually(other.Fetch("b")).Should(testutil.Train(2), "B starts")
		w.gaveWay(2)
		other.SucceedAll("b")
		Eventually(other.Fetch("b")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "B ends")
		w.growsBack()
	})

	It("scenario 3c: but not below the share of A's queue", func() {
		s, other := queues("pairs-share", 7)
		w := start(s, s.Job("a"))
		other.Submit(other.Job("b").Pool(s.Namespace).Range(2, 2))
		Eventually(other.Fetch("b")).Should(testutil.HaveReason(v1beta1.ReasonUnschedulable), "Volcano finds no room for B")
		w.keepsAll()
	})
}

// volcanoJob is a Volcano Job of n pods that start together, with one GPU each and of no particular priority.
func volcanoJob(s *testutil.Scenario, name string, n int32) *batchv1alpha1.Job {
	pod := s.Job(name).Obj().Spec.Template
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: batchv1alpha1.JobSpec{
			SchedulerName: "volcano", MinAvailable: n,
			Tasks: []batchv1alpha1.TaskSpec{{Name: "task", Replicas: n, Template: pod}},
		},
	}
}

// running returns a function that counts the pods of a Volcano Job that run.
func running(s *testutil.Scenario, name string) func() (int32, error) {
	return func() (int32, error) {
		job := &batchv1alpha1.Job{}
		err := s.Client.Get(s.Context(), types.NamespacedName{Namespace: s.Namespace, Name: name}, job)
		return job.Status.Running, err
	}
}

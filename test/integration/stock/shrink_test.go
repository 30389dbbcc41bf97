package stock

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// shrink is the story of scenario 3 where Volcano evicts nobody: A (2..8) fills eight slots, B starves, the operator tells
// workers 7 and 6 of A to leave, B starts, and A grows back when B has ended.
type shrink struct {
	a, b   *testutil.Scenario
	before map[int]types.UID
}

// fill has A fill the eight slots.
func fill(s *testutil.Scenario, a *testutil.JobBuilder) map[int]types.UID {
	GinkgoHelper()
	s.Submit(a.Range(2, 8))
	Eventually(s.Fetch("a")).Should(testutil.Train(8), "A fills the eight slots")
	return s.UIDs("a")
}

// comesAndGoes is the story from B's arrival on.
func (w shrink) comesAndGoes(b *testutil.JobBuilder) {
	GinkgoHelper()
	w.b.Submit(b.Range(2, 4).CompletionGrace(cooldown))
	Eventually(w.b.Fetch("b")).Should(testutil.Train(2), "B starts with its minimum")
	w.shrank()
	w.isTold()
	w.b.SucceedAll("b")
	Eventually(w.b.Fetch("b")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "B ends")
	w.growsBack()
	Eventually(w.b.Events).WithArguments(w.b.Read("b")).WithTimeout(several).Should(
		ContainElement("RoomMade: Workers of other jobs leave to make room for this job: "+w.a.Namespace+"/a (2)."), "it names A")
}

// shrank checks that the operator let exactly workers 7 and 6 go, not before B had starved, and that A is otherwise undisturbed.
func (w shrink) shrank() {
	GinkgoHelper()
	Eventually(w.a.Fetch("a")).Should(And(testutil.Train(6), testutil.HaveReason(v1beta1.ReasonCoolingDown)),
		"A gave way with two workers and says that it will not ask for them yet")
	a := w.a.Read("a")
	Expect(a).To(testutil.HaveRestarts(0), "giving way is no failure")
	Expect(a.Status.LastFailure).To(BeNil(), "giving way is no failure")
	Expect(a.Status.Elasticity.Evicted).To(Equal([]int32{6, 7}), "the highest indices leave")
	deletions, err := toldToLeave(w.a)()
	Expect(err).NotTo(HaveOccurred(), "the audit log is read")
	Expect(deletions).To(ConsistOf(HaveField("Name", "a-worker-6"), HaveField("Name", "a-worker-7")), "exactly two are deleted")
	starved := w.b.Read("b").CreationTimestamp.Add(starvation)
	for _, d := range deletions {
		Expect(testutil.ByOperator(d)).To(BeTrue(), "the operator deleted them: %s", d)
		Expect(d.Received).To(BeTemporally(">=", starved), "B had starved")
	}
	now := w.a.UIDs("a")
	for i := range 6 {
		Expect(now).To(HaveKeyWithValue(i, w.before[i]), "worker %d keeps its pod", i)
	}
}

// isTold checks that A names B, for good.
func (w shrink) isTold() {
	GinkgoHelper()
	winner := w.b.Namespace + "/b"
	Expect(w.a.Read("a").Status.Elasticity.GaveWayTo).To(HaveValue(HaveField("Name", "b")), "A remembers whom it gave way to")
	Eventually(w.a.Events).WithArguments(w.a.Read("a")).Should(
		ContainElement(fmt.Sprintf("GaveWay: Workers 6 and 7 gave way to %s; 6 workers ready.", winner)), "A's story names B")
}

// growsBack waits until A has eight workers again, and checks that the two that left came back after the cooldown.
func (w shrink) growsBack() {
	GinkgoHelper()
	left := w.a.Read("a").Status.Elasticity
	Expect(left.Evicted).To(HaveLen(2), "A remembers who left as long as the cooldown lasts")
	Eventually(w.a.Fetch("a")).WithTimeout(cooldown+time.Minute).Should(testutil.Train(8), "A grows back")
	Expect(w.a.Read("a")).To(testutil.HaveRestarts(0), "neither shrinking nor growing is a failure")
	now := w.a.UIDs("a")
	for i := range 6 {
		Expect(now).To(HaveKeyWithValue(i, w.before[i]), "worker %d keeps its pod while A grows", i)
	}
	for _, i := range left.Evicted {
		creations, err := w.a.Audit.Select(testutil.Doing("create", "pods"), testutil.To(testutil.WorkerName("a", int(i))))
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		Expect(creations).To(HaveLen(2), "worker %d was created anew once", i)
		Expect(creations[1].Received).To(BeTemporally(">=", left.LastEvictionTime.Add(cooldown)),
			"worker %d stayed away during the cooldown", i)
	}
}

// toldToLeave returns a function that lists the deletions of pods in the namespace.
func toldToLeave(s *testutil.Scenario) func() ([]testutil.Request, error) {
	return func() ([]testutil.Request, error) {
		return s.Audit.Select(testutil.Doing("delete", "pods"), testutil.Not(testutil.ByKubelet))
	}
}

// nobodyLeaves checks that for some time no pod is deleted and that A keeps every worker.
func nobodyLeaves(s *testutil.Scenario, before map[int]types.UID) {
	GinkgoHelper()
	Consistently(s.Workers("a", testutil.Running)).WithTimeout(starvation+several).Should(HaveLen(8), "nobody leaves in vain")
	Expect(s.UIDs("a")).To(Equal(before), "every worker of A keeps its pod")
	Expect(toldToLeave(s)()).To(BeEmpty(), "no pod was deleted")
}

var _ = Describe("Where Volcano evicts nobody, the operator", Serial, func() {
	It("scenario 3: lets A shrink for B, and A grows back", func() {
		s := newScenario("stock-s3", 8)
		before := fill(s, s.Job("a").Cooldown(cooldown))
		Expect(schedulerConfigured(s.Read("a"))).To(Equal("False/Incomplete"), "A says that Volcano's configuration is incomplete")
		Expect(testutil.Condition(s.Read("a"), v1beta1.ConditionSchedulerConfigured).Message).To(sayLacks(), "and what it lacks")
		shrink{s, s, before}.comesAndGoes(starving(s, "b"))
	})

	It("scenario 3b: also for a job of a lower tier", suite.Long, func() {
		s := newScenario("stock-s3b", 4, 4)
		before := fill(s, s.Job("a").Cooldown(cooldown).Tier("main-traffic").Asks("1", "1Gi"))
		shrink{s, s, before}.comesAndGoes(starving(s, "b").Tier("exploratory"))
	})

	It("scenario 3c: also for a job in another queue that is under its share", suite.Long, func() {
		s, other := inTwoQueues("stock-s3c", 4)
		before := fill(s, s.Job("a").Cooldown(cooldown))
		shrink{s, other, before}.comesAndGoes(starving(other, "b").Pool(s.Namespace))
	})

	It("scenario 3c: but not below the share of A's queue", suite.Long, func() {
		s, other := inTwoQueues("stock-share", 7)
		before := fill(s, s.Job("a"))
		other.Submit(starving(other, "b").Pool(s.Namespace).Range(2, 2))
		nobodyLeaves(s, before)
	})

	It("scenario 4: but not for a gang that needs more than all surplus", suite.Long, func() {
		s := newScenario("stock-s4", 8)
		before := fill(s, s.Job("a"))
		s.Submit(starving(s, "b").Range(7, 8))
		nobodyLeaves(s, before)
		Expect(s.Read("b")).To(testutil.HavePhase(v1beta1.PhasePending), "B waits")
		Expect(s.Read("b").Status.Message).To(And(ContainSubstring("Free for it: 0 nvidia.com/gpu"),
			ContainSubstring("Surplus that may give way: "+s.Namespace+"/a (6).")), "and says why")
	})

	It("lets nobody leave for room that is on its way", func() {
		s := newScenario("stock-leaving", 8)
		s.Submit(s.Job("stops").Range(2, 2))
		Eventually(s.Fetch("stops")).Should(testutil.Train(2), "a job trains that will be suspended")
		s.Submit(s.Job("a").Range(2, 6))
		Eventually(s.Fetch("a")).Should(testutil.Train(6), "A fills the other slots")
		before := s.UIDs("a")
		for i := range 2 {
			s.Hold("stops", i) // The simulated kubelet knows no grace period.
		}
		s.Patch(s.Read("stops"), `{"spec":{"suspend":true}}`)
		Eventually(s.Fetch("stops")).Should(testutil.HaveReason(v1beta1.ReasonSuspending), "its pods terminate")

		s.Submit(starving(s, "b").Range(2, 2))
		Eventually(s.Fetch("b")).Should(HaveField("Status.Message", ContainSubstring("Pods that are terminating "+
			"hold 2 nvidia.com/gpu.")), "B says what it waits for")
		Consistently(s.Workers("a", testutil.Running)).WithTimeout(starvation+several).Should(HaveLen(6), "nobody leaves for B")
		for i := range 2 {
			s.Release("stops", i)
		}
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "B starts once they have gone")
		Expect(s.UIDs("a")).To(Equal(before), "every worker of A keeps its pod")
	})

	It("serves a modest gang behind an impossible one at the head of the queue", func() {
		s := newScenario("stock-head", 8)
		fill(s, s.Job("a").Cooldown(time.Minute))
		s.Submit(starving(s, "ahead").Range(20, 20))
		Eventually(s.Fetch("ahead")).Should(HaveField("Status.Place", int32(1)), "the impossible gang is first in line")
		s.Submit(starving(s, "b").Range(2, 2))
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "the modest gang is served")
		Eventually(s.Fetch("a")).Should(testutil.Train(6), "by two workers that left")
		Expect(s.Read("ahead")).To(And(testutil.HavePhase(v1beta1.PhasePending), HaveField("Status.Place", int32(1))),
			"the impossible gang waits on")
		s.Submit(starving(s, "c").Range(3, 3))
		Eventually(s.Fetch("c")).Should(testutil.Train(3), "and so is the next")
		Expect(toldToLeave(s)()).To(HaveLen(5), "as many left as were needed")
	})

	It("takes surplus of the older job that has just saved, and not of the younger that has not", func() {
		s := newScenario("stock-saved", 8)
		for _, name := range []string{"old", "young"} {
			s.Submit(s.Job(name).Range(2, 4).ShrinkBy(v1beta1.ShrinkByOperator))
			Eventually(s.Fetch(name)).Should(testutil.Train(4), "%s trains, with two surplus workers", name)
		}
		saved := max(time.Now().Unix(), s.Read("young").Status.RunningSince.Unix()+1)
		s.Patch(s.Worker("old", 0), fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, v1beta1.AnnotationCheckpointDone, saved))
		Eventually(func() map[string]string {
			return testutil.Get(s, &schedulingv1beta1.PodGroup{}, "old").Annotations
		}).Should(HaveKey("volcano.sh/last-checkpoint-time"), "the operator knows of the checkpoint")

		s.Submit(starving(s, "b").Range(2, 2))
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "B starts")
		Expect(toldToLeave(s)()).To(ConsistOf(HaveField("Name", "old-worker-2"), HaveField("Name", "old-worker-3")),
			"the older job loses the least work")
		Expect(s.Read("young")).To(testutil.Train(4), "the younger keeps its workers")
	})

	It("lets a whole step of surplus leave for one worker", suite.Long, func() {
		s := newScenario("stock-step", 8)
		before := fill(s, s.Job("a").With(func(a *v1beta1.ElasticTrainingJob) { a.Spec.Elasticity.Step = 3 }))
		s.Submit(starving(s, "b").Range(1, 1))
		Eventually(s.Fetch("b")).Should(testutil.Train(1), "B starts")
		Eventually(s.Fetch("a")).Should(testutil.Train(5), "A has its core and a step")
		Expect(toldToLeave(s)()).To(ConsistOf(HaveField("Name", "a-worker-5"), HaveField("Name", "a-worker-6"),
			HaveField("Name", "a-worker-7")), "the rest of the step left too")
		now := s.UIDs("a")
		for i := range 5 {
			Expect(now).To(HaveKeyWithValue(i, before[i]), "worker %d keeps its pod", i)
		}
	})

	It("leaves surplus alone whose job leaves it to Volcano", func() {
		s := newScenario("stock-scheduler", 8)
		before := fill(s, s.Job("a").ShrinkBy(v1beta1.ShrinkByScheduler))
		s.Submit(starving(s, "b").Range(2, 2))
		nobodyLeaves(s, before)
	})
})

// inTwoQueues are a scenario of eight slots and one without, each with a queue of its own; the first has that many GPUs as its
// share, the other four.
func inTwoQueues(name string, share int64) (s, other *testutil.Scenario) {
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

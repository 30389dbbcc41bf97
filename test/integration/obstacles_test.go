package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// Something that no watch tells of is looked at again every 30 s.
const lookedAtAgain = 90 * time.Second

var _ = Describe("A job says what is in its way, and goes on by itself when it is gone:", func() {
	It("a Queue that does not exist", func() {
		s := newScenario("queue", 2)
		s.Annotate(schedulingv1beta1.QueueNameAnnotationKey, s.Namespace)
		s.Submit(s.Job("a").Range(2, 2))
		Eventually(s.Fetch("a")).Should(And(testutil.Wait(v1beta1.ReasonQueueNotFound), testutil.HaveCondition(
			v1beta1.ConditionReconciling, metav1.ConditionTrue, v1beta1.ReasonQueueNotFound)), "it says so")
		Expect(s.Read("a").Status.Message).To(Equal(`Volcano Queue "`+s.Namespace+`" does not exist. Create it, or change annotation `+
			`scheduling.volcano.sh/queue-name of namespace `+s.Namespace+`.`), "and what to do")
		Expect(s.Remains()).To(ConsistOf("ElasticTrainingJob a"), "nothing is created meanwhile")
		s.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1})
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "it goes on")
		Expect(s.Read("a").Status.Queue).To(Equal(s.Namespace), "in the queue of its namespace")
	})

	It("an annotation that names a wrong Queue", func() {
		s := newScenario("annotation", 2)
		s.Annotate(schedulingv1beta1.QueueNameAnnotationKey, "there-is-none")
		s.Submit(s.Job("a").Range(2, 2))
		Eventually(s.Fetch("a")).Should(testutil.HaveReason(v1beta1.ReasonQueueNotFound), "it says so")
		s.Annotate(schedulingv1beta1.QueueNameAnnotationKey, "default")
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "it goes on")
		Expect(s.Read("a").Status.Queue).To(Equal("default"), "in the queue that is named now")
		hers := as(s, alice, "admin")
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
		Eventually(func() error { return hers.Create(s.Context(), s.Job("b").Obj(), client.DryRunAll) }).Should(Succeed(),
			"she may do in the namespace what its admins may")
		Expect(hers.Patch(s.Context(), namespace, client.RawPatch(types.MergePatchType, []byte(
			`{"metadata":{"annotations":{"scheduling.volcano.sh/queue-name":"another"}}}`)))).To(MatchError(
			ContainSubstring("forbidden")), "and that is not to choose its queue")
	})

	It("a Queue that is closed; who is in it already stays", func() {
		s := newScenario("closed", 4)
		queue := s.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1})
		s.UseQueue(queue)
		s.Submit(s.Job("early").Range(2, 2))
		Eventually(s.Fetch("early")).Should(testutil.Train(2), "a job trains")
		before := s.UIDs("early")
		closeQueue(s, queue)
		s.Submit(s.Job("late").Range(2, 2))
		Eventually(s.Fetch("late")).Should(testutil.HaveReason(v1beta1.ReasonQueueClosed), "the next one says so")
		Expect(s.Read("late").Status.Message).To(ContainSubstring(`Volcano Queue "`+queue.Name+`" is not open (its state is Clos`),
			"with the state")
		Consistently(s.Workers("late")).WithTimeout(severalCycles).Should(BeEmpty(), "nothing is created meanwhile")
		Expect(s.Read("early")).To(testutil.Train(2), "who is in it already stays")
		Expect(s.UIDs("early")).To(Equal(before), "with its workers")
		openQueue(s, queue)
		Eventually(s.Fetch("late")).Should(testutil.Train(2), "it goes on")
	})

	It("a PriorityClass that is missing; that of the surplus hinders growth only", func() {
		s := newScenario("class", 4)
		// Nobody else uses this tier.
		const tier = "small-traffic"
		core, surplus := takeAway(s, "tideline-"+tier), takeAway(s, "tideline-"+tier+"-surplus")
		s.Submit(s.Job("a").Range(2, 4).Tier(tier))
		Eventually(s.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonPriorityClassMissing), "it says so")
		Expect(s.Read("a").Status.Message).To(And(ContainSubstring("tideline-"+tier), ContainSubstring("`tideline doctor` prints")),
			"and what to do")

		s.Create(core)
		Eventually(s.Fetch("a")).WithTimeout(lookedAtAgain).Should(And(
			testutil.Train(2), testutil.HaveReason(v1beta1.ReasonPriorityClassMissing),
			testutil.HaveCondition(v1beta1.ConditionFullSize, metav1.ConditionFalse, v1beta1.ReasonPriorityClassMissing),
		), "the core goes on")
		s.Create(surplus)
		Eventually(s.Fetch("a")).WithTimeout(lookedAtAgain).Should(testutil.Train(4), "the job grows")
	})

	It("a ResourceQuota that leaves no room", func() {
		s := newScenario("quota", 2)
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "team"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}},
		}
		s.Create(quota)
		Eventually(func() (corev1.ResourceList, error) {
			return quota.Status.Hard, s.Client.Get(s.Context(), client.ObjectKeyFromObject(quota), quota)
		}).Should(HaveKey(corev1.ResourceName("pods")), "the quota is in force")
		s.Submit(s.Job("a").Range(2, 2))
		Eventually(s.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonQuotaExceeded), "it says so")
		Expect(s.Read("a").Status.Message).To(And(
			ContainSubstring("create pod a-worker-1"), ContainSubstring("Raise the ResourceQuota"),
			ContainSubstring("exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1"),
		), "with the figures and what to do")
		s.Patch(quota, `{"spec":{"hard":{"pods":"2"}}}`)
		Eventually(s.Fetch("a")).WithTimeout(lookedAtAgain).Should(testutil.Train(2), "it goes on")
	})

	It("a service account that does not exist yet", func() {
		s := newScenario("account", 2)
		s.Submit(s.Job("a").Range(2, 2).Template(func(t *corev1.PodTemplateSpec) { t.Spec.ServiceAccountName = "trainer" }))
		Eventually(func() (string, error) {
			job, err := s.Fetch("a")()
			return job.Status.Message, err
		}).Should(ContainSubstring(`serviceaccount "trainer" not found`), "it says so")
		s.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "trainer"}})
		Eventually(s.Fetch("a")).WithTimeout(lookedAtAgain).Should(testutil.Train(2), "it goes on")
	})
})

// takeAway deletes a PriorityClass and returns it, to be created again.
func takeAway(s *testutil.Scenario, name string) *schedulingv1.PriorityClass {
	GinkgoHelper()
	class := &schedulingv1.PriorityClass{}
	Expect(s.Client.Get(s.Context(), client.ObjectKey{Name: name}, class)).To(Succeed(), "the class %s is there", name)
	s.Delete(class)
	class.ResourceVersion, class.UID = "", ""
	return class
}

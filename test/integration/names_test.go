package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var _ = Describe("A name that is taken", func() {
	It("scenario 13: by pods of an earlier job: they are not adopted, and nothing of the new job is deleted", func() {
		s := newScenario("s13", 6)
		s.Submit(s.Job("a").Range(2, 3))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "the first job trains")
		first := s.Read("a")
		s.Hold("a", 1)
		s.DeleteJob("a")
		s.Submit(s.Job("a").Range(2, 3))
		second := s.Read("a")
		Expect(second.UID).NotTo(Equal(first.UID), "it is another job")

		Eventually(s.Fetch("a")).Should(testutil.Wait(v1beta1.ReasonPredecessorLeaving), "the second job waits for the name")
		// The operator and the garbage collector decide together which of the old objects is in the way first.
		Expect(s.Read("a").Status.Message).To(MatchRegexp(`(Pod|PodGroup|Service) a\S* belongs to an earlier job`),
			"and says for which")
		Eventually(s.Workers("a", ownedBy(second))).Should(Equal([]int{0}), "what can be created is created")
		kept := s.UIDs("a")[0]
		Consistently(s.Fetch("a")).WithTimeout(severalCycles).Should(testutil.Wait(v1beta1.ReasonPredecessorLeaving),
			"an old pod does not count")
		Expect(metav1.GetControllerOf(s.Worker("a", 1)).UID).To(Equal(first.UID), "it stays the old job's")

		s.Release("a", 1)
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "the second job trains when the name is free")
		Expect(s.UIDs("a")).To(HaveKeyWithValue(0, kept), "what it had, it keeps")
		Expect(s.Workers("a", ownedBy(second))()).To(Equal([]int{0, 1, 2}), "all workers are its own")
		Expect(s.Read("a")).To(testutil.HaveRestarts(0), "the old job's pods are no losses of the new one")
	})

	DescribeTable("scenario 13: by an object of the user's: the job is stalled, the object untouched, until the user removes it",
		func(resource, name string, makeObject func(namespace string) client.Object) {
			s := newScenario("s13-taken", 2)
			taken := makeObject(s.Namespace)
			s.Create(taken)
			s.Submit(s.Job("a").Range(2, 2).With(plain)) // which has all kinds of objects
			Eventually(s.Fetch("a")).Should(testutil.BeStalled(v1beta1.ReasonNameTaken), "the job says so")
			Expect(s.Read("a").Status.Message).To(And(
				ContainSubstring(name+" exists and does not belong to this job"),
				ContainSubstring("The operator has not touched it: delete or rename it"),
			), "and says what to do")
			key := client.ObjectKeyFromObject(taken)
			Consistently(func(g Gomega) {
				now, ok := taken.DeepCopyObject().(client.Object)
				g.Expect(ok).To(BeTrue(), "an object is read")
				g.Expect(s.Client.Get(s.Context(), key, now)).To(Succeed(), "it exists")
				g.Expect(now.GetUID()).To(Equal(taken.GetUID()), "it is the user's")
				g.Expect(now.GetOwnerReferences()).To(BeEmpty(), "nobody took it over")
				g.Expect(now.GetLabels()).To(Equal(taken.GetLabels()), "nobody changed it")
			}).WithTimeout(severalCycles).Should(Succeed(), "the user's object stays as it is")
			Expect(s.Workers("a", ownedBy(s.Read("a")))()).To(BeEmpty(), "no worker is created meanwhile")
			attempts, err := s.Audit.Select(testutil.ByOperator, testutil.Write, testutil.To(taken.GetName()),
				func(r testutil.Request) bool { return r.Resource == resource })
			Expect(err).NotTo(HaveOccurred(), "the audit log is read")
			Expect(attempts).To(And(Not(BeEmpty()), HaveEach(And(HaveField("Verb", "create"), HaveField("Code", BeEquivalentTo(409))))),
				"the operator only tried to create its own")

			s.Delete(taken)
			Eventually(s.Fetch("a")).WithTimeout(90*time.Second).Should(testutil.Train(2), "the job goes on by itself")
			Expect(s.Read("a")).NotTo(testutil.BeStalled(v1beta1.ReasonNameTaken), "nothing is in its way any more")
		},
		// Not long: no other spec of this suite has the operator get a Service, and the suite holds it to use every right.
		Entry("a Service", "services", "Service a-workers", func(namespace string) client.Object {
			return &corev1.Service{ObjectMeta: object(namespace, "a-workers"), Spec: corev1.ServiceSpec{
				Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "shop"},
			}}
		}),
		Entry("a ConfigMap", suite.Long, "configmaps", "ConfigMap a-hosts", func(namespace string) client.Object {
			return &corev1.ConfigMap{ObjectMeta: object(namespace, "a-hosts")}
		}),
		Entry("a PodGroup", "podgroups", "PodGroup a", func(namespace string) client.Object {
			return &schedulingv1beta1.PodGroup{ObjectMeta: object(namespace, "a"), Spec: schedulingv1beta1.PodGroupSpec{MinMember: 7}}
		}),
		Entry("a pod", "pods", "Pod a-worker-0", func(namespace string) client.Object {
			return &corev1.Pod{ObjectMeta: object(namespace, "a-worker-0"), Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "shop"}},
			}}
		}),
	)

	It("does not come from a job whose name differs by a suffix", func() {
		s := newScenario("suffix", 6)
		s.Submit(s.Job("a").Range(1, 2), s.Job("a-worker").Range(1, 2), s.Job("a-worker-0").Range(1, 2))
		for _, job := range []string{"a", "a-worker", "a-worker-0"} {
			Eventually(s.Fetch(job)).Should(testutil.Train(2), "job %s trains", job)
		}
	})
})

func object(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "shop"}}
}

// ownedBy holds for pods of exactly that job, not of another of the same name.
func ownedBy(job *v1beta1.ElasticTrainingJob) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return metav1.IsControlledBy(p, job) }
}

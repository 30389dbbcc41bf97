package integration

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// starvation is how long jobs wait before others leave for them, and afterwards is long enough to see that nobody did.
const (
	starvation = 2 * time.Second
	afterwards = 3 * starvation
)

// trainsOn has job victim of the lowest tier fill two slots, and returns who tells that it was never stopped.
func trainsOn(s *testutil.Scenario) func() {
	GinkgoHelper()
	s.Submit(s.Job("victim").Range(2, 2))
	Eventually(s.Fetch("victim")).Should(testutil.Train(2), "a job trains")
	before := s.UIDs("victim")
	return func() {
		GinkgoHelper()
		Consistently(s.Fetch("victim")).WithTimeout(afterwards).Should(HaveField("Status.Preemption", BeNil()), "it is not stopped")
		Expect(s.UIDs("victim")).To(Equal(before), "its workers keep their pods")
	}
}

// urgent is a job of the tier that stops others.
func urgent(s *testutil.Scenario, name string) *testutil.JobBuilder {
	return s.Job(name).Range(2, 2).Tier("main-traffic").Asks("1", "1Gi").Starvation(starvation)
}

var _ = Describe("Nobody stops for a gang that cannot use the room", func() {
	It("scenario 17a: scheduling gates hold its pods", func() {
		s := newScenario("s17a", 2)
		unharmed := trainsOn(s)
		gates(s)
		s.Submit(urgent(s, "gated"))
		Eventually(s.Fetch("gated")).Should(testutil.HaveReason(v1beta1.ReasonSchedulingGated), "it says what holds it")
		Expect(s.Read("gated").Status.Message).To(ContainSubstring("the scheduling gate example.com/later"), "by name")
		unharmed()
	})

	It("scenario 17b: a quota refuses its pods", func() {
		s, other := newScenario("s17b", 2), newScenario("s17b-other")
		unharmed := trainsOn(s)
		other.Create(&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: other.Namespace, Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		})
		probe := testutil.Job("probe").In(other.Namespace).Obj()
		Eventually(func(ctx context.Context) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: other.Namespace, Name: probe.Name}, Spec: probe.Spec.Template.Spec}
			return s.Client.Create(ctx, pod, client.DryRunAll)
		}).WithContext(s.Context()).Should(MatchError(ContainSubstring("exceeded quota")), "the quota is in force")
		other.Submit(urgent(other, "refused").Pool(s.Namespace))
		Eventually(other.Fetch("refused")).Should(HaveField("Status.Message", ContainSubstring("exceeded quota: none")), "it says so")
		unharmed()
	})

	It("scenario 17c: a core worker has completed, and the other runs on", func() {
		s := newScenario("s17c", 4)
		unharmed := trainsOn(s)
		s.Submit(urgent(s, "done").With(func(j *v1beta1.ElasticTrainingJob) {
			j.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: "0-"}}
		}))
		Eventually(s.Fetch("done")).Should(testutil.Train(2), "it trains beside the other")
		s.Succeed("done", 1)
		Eventually(s.Fetch("done")).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(1)), "worker 1 has completed")
		unharmed()
	})

	It("scenario 17d: its next attempt is in a back-off", suite.Long, func() {
		s := newScenario("s17d", 4)
		unharmed := trainsOn(s)
		s.Submit(urgent(s, "fails").Starvation(0).With(func(j *v1beta1.ElasticTrainingJob) {
			j.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{{
				Action: v1beta1.ActionRestartJob, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodFailed},
			}}}
		}))
		Eventually(s.Fetch("fails")).Should(testutil.Train(2), "it trains beside the other")
		s.Fail("fails", 1, 1, "out of luck")
		Eventually(s.Fetch("fails")).Should(testutil.HaveReason(v1beta1.ReasonBackOff), "it waits for its back-off")
		s.Submit(s.Job("filler").Range(2, 2))
		Eventually(s.Fetch("filler")).WithTimeout(5*time.Second).Should(testutil.Train(2), "another job uses the room meanwhile")
		Expect(s.Read("fails")).To(testutil.HaveReason(v1beta1.ReasonBackOff), "it still waits")
		Expect(s.Read("filler").Status.Preemption).To(BeNil(), "and no job is stopped for it")
		Eventually(s.Fetch("fails")).Should(testutil.Train(2), "the back-off over, it gets its room")
		Expect(s.Read("filler").Status.Preemption.By.String()).To(Equal(s.Namespace+"/fails"), "from the youngest")
		unharmed()
	})

	It("scenario 17e: its Queue is closed", suite.Long, func() {
		s := newScenario("s17e", 2)
		queue := s.NewQueue(schedulingv1beta1.QueueSpec{Weight: 1})
		s.UseQueue(queue)
		unharmed := trainsOn(s)
		s.Submit(urgent(s, "late").Starvation(10 * time.Second))
		Eventually(s.Workers("late", testutil.Waiting)).Should(HaveLen(2), "its pods wait in the Queue")
		closeQueue(s, queue)
		Eventually(s.Fetch("late")).Should(testutil.HaveReason(v1beta1.ReasonQueueClosed), "it says so")
		Consistently(s.Fetch("victim")).WithTimeout(10*time.Second).Should(HaveField("Status.Preemption", BeNil()), "it has starved")
		unharmed()
	})

	It("scenario 17f: its PersistentVolumeClaim never binds", suite.Long, func() {
		s := newScenario("s17f", 2)
		unharmed := trainsOn(s)
		s.Create(&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "never"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: ptr.To("there-is-none"),
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceStorage: resource.MustParse("1Gi"),
				}},
			},
		})
		s.Submit(urgent(s, "waits").Mounts("never"))
		Eventually(s.Fetch("waits")).Should(HaveField("Status.Message", ContainSubstring("a PersistentVolumeClaim that is not bound")),
			"it says what is not known")
		unharmed()
	})

	It("scenario 17g: others leave for it although pods with a year of grace are on their way out", func() {
		s := newScenario("s17g", 4)
		s.Submit(s.Job("victim").Range(2, 2))
		Eventually(s.Fetch("victim")).Should(testutil.Train(2), "a job trains")
		s.Submit(s.Job("lingers").Range(2, 2))
		Eventually(s.Fetch("lingers")).Should(testutil.Train(2), "another trains beside it")
		linger(s, "lingers", 365*24*time.Hour)
		s.Submit(urgent(s, "urgent"))
		Eventually(s.Fetch("urgent")).Should(testutil.Train(2), "it does not wait for a year")
		Expect(s.Read("victim").Status.Preemption.By.String()).To(Equal(s.Namespace+"/urgent"), "the other job has stopped for it")
		linger(s, "lingers", 0)
	})

	It("scenario 17h: its RuntimeClass chooses nodes that there are none", suite.Long, func() {
		s := newScenario("s17h", 2)
		unharmed := trainsOn(s)
		class := &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}, Handler: "sandbox",
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"sandbox": s.Namespace}},
		}
		s.Create(class)
		DeferCleanup(func(ctx SpecContext) {
			Expect(s.Client.Delete(ctx, class)).To(Succeed(), "the class goes with the scenario")
		})
		s.Submit(urgent(s, "boxed").Template(func(t *corev1.PodTemplateSpec) { t.Spec.RuntimeClassName = ptr.To(class.Name) }))
		Eventually(s.Fetch("boxed")).Should(HaveField("Status.Message", ContainSubstring("No node takes its workers")))
		unharmed()
	})
})

// gates has the API server put a scheduling gate on pods of job gated, as a webhook of the cluster does.
func gates(s *testutil.Scenario) {
	GinkgoHelper()
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.Namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			MatchConditions: []admissionv1.MatchCondition{{Name: "job", Expression: `object.metadata.name.startsWith("gated-")`}},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{
					Expression: `Object{spec: Object.spec{schedulingGates: [Object.spec.schedulingGates{name: "example.com/later"}]}}`,
				},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	s.Create(policy, binding)
	DeferCleanup(func(ctx SpecContext) {
		Expect(s.Client.Delete(ctx, binding)).To(Succeed(), "the policy goes with the scenario")
		Expect(s.Client.Delete(ctx, policy)).To(Succeed(), "the policy goes with the scenario")
	})
	probe := testutil.Job("gated-probe").In(s.Namespace).Obj()
	Eventually(func(ctx context.Context) ([]corev1.PodSchedulingGate, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: probe.Name}, Spec: probe.Spec.Template.Spec}
		err := s.Client.Create(ctx, pod)
		if err == nil {
			err = s.Client.Delete(ctx, pod)
		}
		return pod.Spec.SchedulingGates, err
	}).WithContext(s.Context()).ShouldNot(BeEmpty(), "the policy is in force")
}

// linger deletes the pods of a job with that much grace.
func linger(s *testutil.Scenario, job string, grace time.Duration) {
	GinkgoHelper()
	pods, err := s.Pods(job)
	Expect(err).NotTo(HaveOccurred(), "the pods are listed")
	for i := range pods {
		s.Patch(&pods[i], `{"metadata":{"annotations":{"`+cluster.LingerAnnotation+`":"true"}}}`)
		Expect(s.Client.Delete(s.Context(), &pods[i], client.GracePeriodSeconds(int64(grace/time.Second)))).To(Succeed())
	}
}

var _ = Describe("A promise has an end", Ordered, func() {
	var in *testutil.Installation
	const inTime = 5 * time.Second

	BeforeAll(func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "tideline.yaml")
		Expect(os.WriteFile(file, []byte("apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\n"+
			"claims: {placementTimeoutSeconds: 5}\n"), 0o600)).To(Succeed(), "the configuration is written")
		in = shared.Own(ctx, cluster.Options{GPUNodes: 1}, "--config="+file)
	})

	It("scenario 17: a job that stopped for a gang that Volcano does not place goes on, until the gang changes", func() {
		s := in.NewScenario(GinkgoT(), "promise", 2)
		s.Submit(s.Job("victim").Range(2, 2))
		Eventually(s.Fetch("victim")).Should(testutil.Train(2), "a job trains")
		s.Submit(urgent(s, "ghost"))
		Eventually(s.Workers("ghost", testutil.Waiting)).Should(HaveLen(2), "an important gang waits")
		// Volcano does not place a gang without the members of each task that its PodGroup asks for.
		group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "ghost"}}
		s.Patch(group, `{"spec":{"minTaskMember":{"nobody":1}}}`)

		Eventually(s.Fetch("victim")).Should(testutil.HaveReason(v1beta1.ReasonPreempted), "the job stops for it")
		Eventually(s.Fetch("ghost")).WithTimeout(inTime+10*time.Second).Should(
			testutil.HaveReason(v1beta1.ReasonNotPlaced), "it is not placed in time")
		Eventually(s.Fetch("victim")).Should(testutil.Train(2), "the job goes on by itself")
		left := s.Read("victim").Status.LeftInVain
		Expect(left).To(HaveField("For.String()", s.Namespace+"/ghost"), "its status says for whom it stopped in vain")
		Expect(s.Read("ghost").Status.Message).To(ContainSubstring(s.Namespace+"/victim (2)"), "and so does the other's")
		Consistently(s.Fetch("victim")).WithTimeout(3*inTime).Should(
			HaveField("Status.Preemption", BeNil()), "it stops no more for a gang that is as it was")

		s.Patch(group, `{"spec":{"minTaskMember":null}}`)
		s.DeleteWorker("ghost", 1)
		Eventually(s.Fetch("ghost")).Should(testutil.Train(2), "with another pod it claims room again, and gets it")
		Eventually(s.Fetch("victim")).Should(testutil.HaveReason(v1beta1.ReasonPreempted), "from the same job")
		s.DeleteJob("ghost")
		Eventually(s.Fetch("victim")).Should(testutil.Train(2), "which goes on afterwards")
	})
})

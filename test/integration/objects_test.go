package integration

import (
	"fmt"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("What a job consists of", func() {
	asks := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	// elaborate is a job of 2..3 with a sidecar, an init container and fields of its own, of a tier that is Guaranteed.
	elaborate := func(s *testutil.Scenario) *testutil.JobBuilder {
		return s.Job("a").Range(2, 3).GPUs(2).Tier("main-traffic").MinSurplusRun(7 * time.Second).
			Template(func(t *corev1.PodTemplateSpec) {
				t.Labels = map[string]string{"team": "ads"}
				t.Annotations = map[string]string{"example.com/note": "kept"}
				trainer := &t.Spec.Containers[0]
				trainer.Env = []corev1.EnvVar{{Name: "LEARNING_RATE", Value: "0.1"}}
				trainer.Resources.Requests = asks("500m", "1Gi")
				t.Spec.InitContainers = []corev1.Container{{Name: "fetch", Image: "fetch", Resources: corev1.ResourceRequirements{
					Requests: asks("2", "512Mi"),
				}}}
				t.Spec.Containers = append([]corev1.Container{{Name: "logs", Image: "logs", Resources: corev1.ResourceRequirements{
					Limits: asks("100m", "1Gi"),
				}}}, t.Spec.Containers...)
			}).
			With(func(job *v1beta1.ElasticTrainingJob) {
				port := int32(29500)
				job.Spec.Framework.Port = &port
				job.Spec.Framework.Torchrun = &v1beta1.Torchrun{RdzvConf: []v1beta1.RdzvConf{{Key: "close_timeout", Value: "40"}}}
			})
	}

	It("are pods with everything that Volcano and torchrun must be told", mainWay, func() {
		s := newScenario("pods", 6)
		s.Submit(elaborate(s))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		a := s.Read("a")
		for i := range 3 {
			pod := s.Worker("a", i)
			group, class, role, task := "a", "tideline-main-traffic", "core", "worker"
			if i == 0 {
				task = "master"
			}
			if i == 2 {
				group, class, role = "a-surplus", "tideline-main-traffic-surplus", "surplus"
				Expect(pod.Spec.Priority).To(HaveValue(BeNumerically("<", -10)), "surplus comes after every core and buys no nodes")
				Expect(pod.Spec.PreemptionPolicy).To(HaveValue(Equal(corev1.PreemptNever)), "surplus takes from nobody")
				Expect(pod.Annotations).To(HaveKeyWithValue("volcano.sh/cooldown-time", "7s"), "surplus is left alone at first")
			} else {
				Expect(pod.Spec.Priority).To(HaveValue(BeNumerically(">", 0)), "core comes before everybody's surplus")
				Expect(pod.Annotations).NotTo(HaveKey("volcano.sh/cooldown-time"), "core is never evicted")
			}
			Expect(pod.Annotations).To(And(
				HaveKeyWithValue("scheduling.k8s.io/group-name", group),
				HaveKeyWithValue("volcano.sh/task-spec", task),
				HaveKeyWithValue("volcano.sh/task-priority", strconv.Itoa(65536-i)),
				HaveKeyWithValue("volcano.sh/preemptable", strconv.FormatBool(role == "surplus")),
				HaveKeyWithValue("example.com/note", "kept"),
			), "annotations of worker %d", i)
			Expect(pod.Labels).To(Equal(map[string]string{
				"tideline.io/job": "a", "tideline.io/worker-index": strconv.Itoa(i), "tideline.io/part": role,
				"tideline.io/attempt": a.Status.Attempt.ID(), "tideline.io/task": "a", "team": "ads",
			}), "labels of worker %d", i)
			Expect(pod.OwnerReferences).To(ConsistOf(v1beta1.ControllerReference(a, "ElasticTrainingJob")),
				"the job controls worker %d", i)
			Expect(pod.Spec).To(And(
				HaveField("SchedulerName", "volcano"), HaveField("PriorityClassName", class),
				HaveField("Hostname", pod.Name), HaveField("Subdomain", "a-workers"),
				HaveField("RestartPolicy", corev1.RestartPolicyOnFailure), HaveField("ShareProcessNamespace", HaveValue(BeTrue())),
			), "spec of worker %d", i)
			Expect(pod.Status.QOSClass).To(Equal(corev1.PodQOSGuaranteed), "the API server finds worker %d as its tier promises", i)
			Expect(pod.Spec.Containers[1].Resources.Limits).To(HaveLen(3), "limits of CPU and memory join that of GPUs")
			Expect(pod.Spec.Containers[1].Env).To(Equal(environment(a, i)), "variables of worker %d's container trainer", i)
			Expect(pod.Spec.Containers[0].Env).To(BeEmpty(), "only the container trainer trains")
		}
	})

	It("are PodGroups of core and surplus, and a headless Service", mainWay, func() {
		s := newScenario("groups", 6)
		s.Submit(elaborate(s))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		owner := ConsistOf(v1beta1.ControllerReference(s.Read("a"), "ElasticTrainingJob"))

		core := testutil.Get(s, &schedulingv1beta1.PodGroup{}, "a")
		Expect(core.OwnerReferences).To(owner, "the job controls the core's group")
		Expect(core.Spec).To(And(HaveField("MinMember", BeEquivalentTo(2)), HaveField("Queue", "default"),
			HaveField("PriorityClassName", "tideline-main-traffic")), "the core is placed all together")
		all := *core.Spec.MinResources
		Expect(all["memory"]).To(BeComparableTo(resource.MustParse("4Gi")), "the containers' memory counts, being larger, for two")
		Expect(all["cpu"]).To(BeComparableTo(resource.MustParse("4")), "the init container's CPU counts, being larger, for two")
		Expect(all["nvidia.com/gpu"]).To(BeComparableTo(resource.MustParse("4")), "limits stand for requests, for two")
		Expect(all).To(HaveLen(3), "nothing else is asked for")

		surplus := testutil.Get(s, &schedulingv1beta1.PodGroup{}, "a-surplus")
		Expect(surplus.OwnerReferences).To(owner, "the job controls the surplus's group")
		Expect(surplus.Spec).To(And(HaveField("MinMember", BeZero()), HaveField("MinResources", BeNil()), HaveField("Queue", "default"),
			HaveField("PriorityClassName", "tideline-main-traffic-surplus")), "surplus is placed one by one")

		service := testutil.Get(s, &corev1.Service{}, "a-workers")
		Expect(service.OwnerReferences).To(owner, "the job controls the Service")
		Expect(service.Spec).To(And(HaveField("ClusterIP", "None"), HaveField("PublishNotReadyAddresses", BeTrue()),
			HaveField("Selector", Equal(map[string]string{"tideline.io/job": "a"})),
			HaveField("Ports", ConsistOf(HaveField("Port", BeEquivalentTo(29500))))), "workers find worker 0 before anything is ready")
	})

	It("is restored when somebody edits or deletes a PodGroup, and training is not disturbed", func() {
		s := newScenario("restore", 4)
		s.Submit(s.Job("a").Range(2, 4))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		before := s.UIDs("a")
		core := testutil.Get(s, &schedulingv1beta1.PodGroup{}, "a")
		s.Patch(core, `{"metadata":{"labels":{"team":"ads"}},"spec":{"minMember":1,"minResources":{"nvidia.com/gpu":"1"}}}`)
		Eventually(func() (schedulingv1beta1.PodGroupSpec, error) {
			return core.Spec, s.Client.Get(s.Context(), client.ObjectKeyFromObject(core), core)
		}).Should(And(HaveField("MinMember", BeEquivalentTo(2)), HaveField("MinResources", HaveValue(HaveKeyWithValue(
			testutil.GPUResource, BeComparableTo(resource.MustParse("2")))))), "it is restored")
		Expect(core.Labels).To(HaveKeyWithValue("team", "ads"), "what others set is kept")

		for _, name := range []string{"a", "a-surplus"} {
			group := testutil.Get(s, &schedulingv1beta1.PodGroup{}, name)
			uid := group.UID
			s.Delete(group)
			Eventually(func() (string, error) {
				err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(group), group)
				return string(group.UID), err
			}).ShouldNot(Equal(string(uid)), "PodGroup %s is created anew", name)
		}
		Consistently(s.Fetch("a")).WithTimeout(severalCycles).Should(And(testutil.Train(4), testutil.HaveRestarts(0)), "A trains on")
		Expect(s.UIDs("a")).To(Equal(before), "with the workers it had")
	})

	It("is restored when somebody deletes the Service", func() {
		s := newScenario("service", 2)
		s.Submit(s.Job("a").Range(2, 2))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		s.Delete(testutil.Get(s, &corev1.Service{}, "a-workers"))
		Eventually(s.Remains).Should(ContainElement("Service a-workers"), "it is created anew")
		Expect(s.Read("a")).To(And(testutil.Train(2), testutil.HaveRestarts(0)), "A trains on")
	})
})

// environment is what the container trainer of worker i gets: the user's variables, then torchrun's.
func environment(a *v1beta1.ElasticTrainingJob, i int) []corev1.EnvVar {
	host := func(i int) string { return fmt.Sprintf("a-worker-%d.a-workers.%s.svc", i, a.Namespace) }
	isHost := 0
	if i == 0 {
		isHost = 1
	}
	var env []corev1.EnvVar
	for _, v := range [][2]string{
		{"LEARNING_RATE", "0.1"},
		{"PET_NNODES", "2:3"},
		{"PET_NPROC_PER_NODE", "2"},
		{"PET_RDZV_BACKEND", "c10d"},
		{"PET_RDZV_ENDPOINT", host(0) + ":29500"},
		{"PET_RDZV_ID", fmt.Sprintf("%s-1-%d", a.UID, a.Status.Attempt.StartTime.Unix())},
		{"PET_RDZV_CONF", fmt.Sprintf("is_host=%d,join_timeout=600,last_call_timeout=30,read_timeout=300,close_timeout=40", isHost)},
		{"PET_LOCAL_ADDR", host(i)},
		{"PET_MAX_RESTARTS", "100"},
	} {
		env = append(env, corev1.EnvVar{Name: v[0], Value: v[1]})
	}
	return env
}

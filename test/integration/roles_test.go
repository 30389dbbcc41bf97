package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// servers are two parameter servers on nodes for them, without a GPU.
func servers(job *v1beta1.ElasticTrainingJob) {
	asks := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
	job.Spec.Roles = append(job.Spec.Roles, v1beta1.JobRole{
		Name: "ps", Replicas: 2, Args: []string{"serve"},
		Master: v1beta1.Master{Resources: &asks, NodeSelector: map[string]string{"kind": "cpu"}},
	})
}

// launcher leads.
func launcher(job *v1beta1.ElasticTrainingJob) {
	job.Spec.Roles = append(job.Spec.Roles, v1beta1.JobRole{
		Name: "launcher", Replicas: 1, Lead: true, Command: []string{"launch"},
		Master: v1beta1.Master{Resources: &corev1.ResourceRequirements{}},
	})
}

var _ = Describe("Roles", func() {
	// label makes a node one for servers.
	label := func(s *testutil.Scenario, node string) {
		s.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, `{"metadata":{"labels":{"kind":"cpu"}}}`)
	}

	It("are placed together, and only the workers of the template stretch", func() {
		s := newScenario("roles", 4, 0)
		label(s, s.Node(1))
		s.Submit(s.Job("a").Range(4, 8).With(plain).With(servers))
		Eventually(s.Fetch("a")).Should(testutil.Train(6), "A trains: two servers, two workers of the core, and two of surplus")
		for i, name := range []string{"a-worker-0", "a-ps-1", "a-ps-2", "a-worker-3", "a-worker-4", "a-worker-5"} {
			pod := s.Worker("a", i)
			role, node := "", s.Node(0)
			if i == 1 || i == 2 {
				role, node = "ps", s.Node(1)
				Expect(pod.Spec.Containers[0].Args).To(Equal([]string{"serve"}), "a server serves")
			}
			Expect(pod.Name).To(Equal(name), "its name has its role, and its number in the job")
			Expect(pod.Labels[v1beta1.LabelRole]).To(Equal(role), "%s can be selected by its role", name)
			Expect(pod.Spec.NodeName).To(Equal(node), "%s is where its role belongs", name)
		}
		Expect(s.Read("a").Status.Accelerators).To(BeEquivalentTo(4), "servers have none")
		core := testutil.Get(s, &schedulingv1beta1.PodGroup{}, "a")
		Expect(core.Spec.MinMember).To(BeEquivalentTo(4), "Volcano places servers and workers together")
		Expect(*core.Spec.MinResources).To(HaveKeyWithValue(testutil.GPUResource, BeComparableTo(resource.MustParse("2"))),
			"for what they ask together")
		told := testutil.Get(s, &corev1.ConfigMap{}, "a-hosts").Data
		Expect(told).To(And(HaveKeyWithValue("role0.host", "a-ps-1.a-workers\na-ps-2.a-workers"),
			HaveKeyWithValue("hostfile", Not(ContainSubstring("a-ps")))), "all know the servers, which train nothing")

		s.Submit(s.Job("b").Range(2, 2))
		Eventually(s.Fetch("b")).Should(testutil.Train(2), "B gets the room of A's surplus")
		Eventually(s.Workers("a", testutil.Running)).Should(Equal([]int{0, 1, 2, 3}), "A keeps its servers")
		s.DeleteJob("b")
		Eventually(s.Fetch("a")).Should(testutil.Train(6), "and grows again")
		Expect(s.Read("a").Status.Restarts).To(BeZero(), "none of that cost a restart")
	})

	It("wait together where one of them has no place, and say for which room", func() {
		s := newScenario("roles-wait", 4, 0)
		s.Submit(s.Job("a").Range(4, 4).With(plain).With(servers))
		Eventually(s.Fetch("a")).Should(HaveField("Status.Conditions", ContainElement(And(HaveField("Type", "Scheduled"),
			HaveField("Status", metav1.ConditionFalse)))), "A waits")
		Consistently(s.Workers("a", testutil.Bound)).WithTimeout(severalCycles).Should(BeEmpty(), "no worker takes a GPU meanwhile")
		label(s, s.Node(1))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains once the servers have a node")
	})

	It("begin anew together when one is lost, and end with the one that leads", func() {
		s := newScenario("roles-lead", 4, 0)
		label(s, s.Node(1))
		s.Submit(s.Job("a").Range(4, 4).With(plain).With(servers).With(launcher))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		Expect(s.Worker("a", 0).Name).To(Equal("a-launcher-0"), "worker 0 launches")
		before := s.UIDs("a")
		s.Fail("a", 1, 1, "out of parameters")
		Eventually(s.Fetch("a")).Should(And(testutil.Train(4), testutil.HaveRestarts(1)), "A trains again")
		for i, uid := range s.UIDs("a") {
			Expect(uid).NotTo(Equal(before[i]), "worker %d knew a server that is gone", i)
		}
		s.Succeed("a", 0)
		Eventually(s.Fetch("a")).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "A has succeeded with its launcher")
	})

	It("are no part of torchrun's rendezvous, and are replaced alone", func() {
		s := newScenario("roles-torch", 4)
		s.Submit(s.Job("a").Range(3, 4).With(func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Roles = []v1beta1.JobRole{{Name: "evaluator", Replicas: 1}}
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		env := func(i int) []corev1.EnvVar { return s.Worker("a", i).Spec.Containers[0].Env }
		Expect(env(0)).To(ContainElement(corev1.EnvVar{Name: "PET_NNODES", Value: "2:3"}), "torchrun waits for no evaluator")
		Expect(env(1)).NotTo(ContainElement(HaveField("Name", HavePrefix("PET_"))), "which knows nothing of it")
		before := s.UIDs("a")
		s.Fail("a", 1, 1, "no validation data")
		Eventually(s.UIDs).WithArguments("a").Should(And(HaveLen(4), HaveKeyWithValue(1, Not(Equal(before[1])))), "it comes back")
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains")
		after := s.UIDs("a")
		for _, i := range []int{0, 2, 3} {
			Expect(after[i]).To(Equal(before[i]), "worker %d trained on", i)
		}
	})

	It("that contradict the job stall it with the field and what to do, where no webhook refuses it", func() {
		s := newScenario("roles-wrong", 4)
		s.Submit(s.Job("a").Range(2, 4).With(plain).With(servers))
		Eventually(s.Fetch("a")).Should(testutil.BeStalled(v1beta1.ReasonInvalidSpec), "A cannot train without a worker")
		Expect(testutil.Condition(s.Read("a"), v1beta1.ConditionStalled).Message).To(And(
			ContainSubstring("spec.minReplicas: Invalid value: 2: must be more than the 2 workers of roles"),
			ContainSubstring("set it to 3 or more")), "it says why")
		s.Patch(s.Read("a"), `{"spec":{"minReplicas":3}}`)
		s.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Node(0)}}, `{"metadata":{"labels":{"kind":"cpu"}}}`)
		Eventually(s.Fetch("a")).Should(testutil.Train(4), "A trains once that is so")
	})
})

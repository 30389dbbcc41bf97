package integration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// plain has a job train without torchrun.
func plain(job *v1beta1.ElasticTrainingJob) { job.Spec.Framework.Type = v1beta1.FrameworkCustom }

var _ = Describe("Workers of other shapes", func() {
	It("are told of each other without torchrun, in a ConfigMap that follows who runs", func() {
		s := newScenario("plain", 3)
		s.Submit(s.Job("a").Range(2, 3).With(plain).With(func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{
				{Action: v1beta1.ActionRestartWorker, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodEvicted}},
			}}
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		hosts := func() (string, error) {
			m := &corev1.ConfigMap{}
			err := s.Client.Get(s.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "a-hosts"}, m)
			return m.Data["hosts"], client.IgnoreNotFound(err)
		}
		all := "a-worker-0.a-workers\na-worker-1.a-workers\na-worker-2.a-workers\n"
		Eventually(hosts).Should(Equal(all), "surplus is listed once status knows that it runs")
		m := testutil.Get(s, &corev1.ConfigMap{}, "a-hosts")
		Expect(m.Data).To(And(HaveKeyWithValue("VC_MASTER_HOSTS", "a-worker-0.a-workers"), HaveKeyWithValue("VC_WORKER_NUM", "2"),
			HaveKeyWithValue("hostfile", ContainSubstring("a-worker-1.a-workers slots=1\n"))), "as Volcano and Open MPI want it")
		pod := s.Worker("a", 1)
		Expect(pod.Spec.Containers[0].Env).NotTo(ContainElement(HaveField("Name", HavePrefix("PET_"))), "torchrun has no part in it")
		Expect(pod.Spec.Containers[0].VolumeMounts).To(ContainElement(And(HaveField("Name", "tideline-hosts"),
			HaveField("MountPath", "/etc/tideline"))), "it is mounted")

		writes, err := s.Audit.Select(testutil.ByOperator, testutil.Change)
		Expect(err).NotTo(HaveOccurred())
		Expect(slices.DeleteFunc(writes, func(r testutil.Request) bool { return r.Resource != "configmaps" })).To(HaveLen(2),
			"created with the core, patched once for the surplus")

		s.Delete(m)
		Eventually(hosts).Should(Equal(all), "deleted, it is created anew")
		s.Patch(testutil.Get(s, &corev1.ConfigMap{}, "a-hosts"), `{"data":{"hosts":"elsewhere","mine":"kept"}}`)
		Eventually(hosts).Should(Equal(all), "edited, it is restored")
		Expect(testutil.Get(s, &corev1.ConfigMap{}, "a-hosts").Data).To(HaveKeyWithValue("mine", "kept"), "what others add is theirs")

		s.Evict("a", 2)
		Eventually(hosts).Should(Equal(strings.TrimSuffix(all, "a-worker-2.a-workers\n")), "who gave way is listed no more")
		s.DeleteJob("a")
		Eventually(hosts).Should(BeEmpty(), "it goes with the job")
	})

	It("have a key pair where the operator may create Secrets", func() {
		s := newScenario("keys", 2)
		grant(s, "ssh-keys")
		s.Submit(s.Job("a").Range(2, 2).With(plain).With(func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Framework.SSH = v1beta1.SSHKeyPair
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		secret := sshSecret(s, "a")
		Expect(secret.Type).To(Equal(corev1.SecretTypeSSHAuth), "the API server knows what it is")
		Expect(string(secret.Data["authorized_keys"])).To(HaveSuffix(" "+s.Namespace+"/a\n"), "and says whose")
		Expect(metav1.IsControlledBy(secret, s.Read("a"))).To(BeTrue(), "it goes with the job")

		s.DeleteWorker("a", 1)
		Eventually(s.Fetch("a")).Should(And(testutil.Train(2), testutil.HaveRestarts(1)), "A trains again")
		again := testutil.Get(s, &corev1.Secret{}, secret.Name)
		Expect(again.UID).To(Equal(secret.UID), "with the key pair that it had")
	})

	It("are counted and placed by what worker 0 asks for, and what the others do", func() {
		s := newScenario("master", 4, 2)
		s.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Node(0)}}, `{"metadata":{"labels":{"disk":"ssd"}}}`)
		s.Submit(s.Job("a").Range(3, 3).With(func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Master = &v1beta1.Master{
				Resources:    &corev1.ResourceRequirements{Limits: corev1.ResourceList{testutil.GPUResource: resource.MustParse("4")}},
				NodeSelector: map[string]string{"disk": "ssd"},
			}
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains")
		Expect(s.Worker("a", 0).Spec.NodeName).To(Equal(s.Node(0)), "worker 0 is where it wants to be")
		Expect(s.Read("a").Status.Accelerators).To(BeEquivalentTo(6), "4 and two times 1")
		core := testutil.Get(s, &schedulingv1beta1.PodGroup{}, "a")
		Expect(*core.Spec.MinResources).To(HaveKeyWithValue(testutil.GPUResource, BeComparableTo(resource.MustParse("6"))),
			"Volcano is told the same")
	})

	It("are placed after worker 0, also where each of them would rather have its node", func() {
		const workers = 6 // By chance worker 0 would be the first in one of six runs.
		s := newScenario("first", 1, workers-1)
		s.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Node(0)}}, `{"metadata":{"labels":{"disk":"ssd"}}}`)
		s.Submit(s.Job("a").Range(workers, workers).With(func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Master = &v1beta1.Master{NodeSelector: map[string]string{"disk": "ssd"}}
		}).Template(func(t *corev1.PodTemplateSpec) {
			t.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
					Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}},
					}},
				}},
			}}
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(workers), "A trains: nobody took the one place that worker 0 can have")
		Expect(s.Worker("a", 0).Spec.NodeName).To(Equal(s.Node(0)))
	})

	It("run on one model of accelerator, the first on which the core fits", func() {
		s := newScenario("models", 1, 3)
		for i, model := range []string{"A100", "H100"} {
			s.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Node(i)}},
				fmt.Sprintf(`{"metadata":{"labels":{"nvidia.com/gpu.product":%q}}}`, model))
		}
		s.Submit(s.Job("a").Range(2, 4).With(func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Accelerator = &v1beta1.Accelerator{Models: []string{"A100", "H100"}}
		}))
		Eventually(s.Fetch("a")).Should(testutil.Train(3), "A trains on the three of one model")
		Expect(s.Read("a").Status.Attempt).To(HaveField("Model", "H100"), "and says which")
		for i := range 3 {
			Expect(s.Worker("a", i).Spec.NodeName).To(Equal(s.Node(1)), "worker %d is on it", i)
		}
		Consistently(s.Fetch("a")).WithTimeout(severalCycles).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(3)),
			"the place on the other model stays free")
	})

	It("have a port of their own on the host's network", func() {
		s := newScenario("host", 2)
		s.Submit(s.Job("a").Range(2, 2).Template(func(t *corev1.PodTemplateSpec) { t.Spec.HostNetwork = true }))
		Eventually(s.Fetch("a")).Should(testutil.Train(2), "A trains")
		pod, service := s.Worker("a", 1), testutil.Get(s, &corev1.Service{}, "a-workers")
		Expect(pod.Spec.DNSPolicy).To(Equal(corev1.DNSClusterFirstWithHostNet), "workers find each other by name")
		port := service.Spec.Ports[0].Port
		Expect(port).To(And(BeNumerically(">=", 20000), BeNumerically("<", 30000), Not(BeEquivalentTo(29400))), "it is derived")
		Expect(pod.Spec.Containers[0].Env).To(ContainElement(HaveField("Value", HaveSuffix(fmt.Sprintf(".svc:%d", port)))),
			"torchrun is told the same")
		Expect(s.Worker("a", 0).Spec.Containers[0].Ports).To(ContainElement(HaveField("HostPort", port)), "worker 0 declares it")
		Expect(s.Read("a").Status.Attempt.HostPort).To(Equal(port), "the status has it")
		Expect(pod.Spec.Containers[0].Ports).To(BeEmpty(), "and no other worker, which takes none")
	})

	It("of two jobs with one port on the host's network never share a node as worker 0", func() {
		s := newScenario("one-port", 2, 2)
		submit := func(name string) {
			s.Submit(s.Job(name).Range(1, 1).With(func(job *v1beta1.ElasticTrainingJob) {
				job.Spec.Template.Spec.HostNetwork, job.Spec.Framework.Port = true, new(int32(25000))
			}))
		}
		submit("a")
		submit("b")
		Eventually(s.Fetch("a")).Should(testutil.Train(1), "A trains")
		Eventually(s.Fetch("b")).Should(testutil.Train(1), "B trains")
		submit("c")
		Expect(s.Worker("a", 0).Spec.NodeName).NotTo(Equal(s.Worker("b", 0).Spec.NodeName), "on the other node")
		Eventually(s.Fetch("c")).WithTimeout(time.Minute).Should(HaveField("Status.Message",
			ContainSubstring("Enough is free in all, but not where its workers may be beside other pods")), "C is told why it waits")
		s.DeleteJob("a")
		Eventually(s.Fetch("c")).Should(testutil.Train(1), "C trains when the port is free")
	})
})

// sshSecret is the Secret with the key pair that worker 0 of a job mounts.
func sshSecret(s *testutil.Scenario, job string) *corev1.Secret {
	GinkgoHelper()
	mounted := s.Worker(job, 0).Spec.Volumes
	at := slices.IndexFunc(mounted, func(v corev1.Volume) bool { return v.Name == "tideline-ssh" })
	Expect(at).To(BeNumerically(">=", 0), "the keys are mounted")
	return testutil.Get(s, &corev1.Secret{}, mounted[at].Secret.SecretName)
}

// grant gives the operator the rights of a component.
func grant(s *testutil.Scenario, component string) {
	GinkgoHelper()
	role, err := testutil.Manifests(s.Context(), "components/"+component+"/*.yaml")
	Expect(err).NotTo(HaveOccurred(), "the component is read")
	for _, o := range role {
		if err := s.Client.Create(s.Context(), o); !apierrors.IsAlreadyExists(err) {
			Expect(err).NotTo(HaveOccurred(), "the component is applied")
		}
	}
}

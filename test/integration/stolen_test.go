package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/test/testutil"
)

// Whoever has the operator's token tries what its role allows, and writes nothing: all of it is a dry run, which admission judges
// as it does the rest.
var _ = Describe("A stolen token of the operator", Ordered, func() {
	const notOurs, system = "writes only what an object of tideline.io controls", "writes nothing in namespace kube-system"
	var s *testutil.Scenario
	var thief client.Client
	var ours metav1.OwnerReference

	BeforeAll(func(ctx SpecContext) {
		s = newScenario("stolen", 2)
		grant(s, "job-pages")
		account := "system:serviceaccount:" + testutil.OperatorNamespace + ":" + testutil.OperatorServiceAccount
		as, err := s.As(account, "system:serviceaccounts", "system:serviceaccounts:"+testutil.OperatorNamespace, "system:authenticated")
		Expect(err).NotTo(HaveOccurred())
		thief = client.NewDryRunClient(as)
		s.Submit(s.Job("running").Range(1, 1))
		Eventually(s.Fetch("running")).Should(testutil.Train(1))
		ours = v1beta1.ControllerReference(s.Read("running"), v1beta1.ElasticTrainingJobKind)

		auth := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "aws-auth"}}
		Expect(client.IgnoreAlreadyExists(s.Client.Create(ctx, auth))).To(Succeed())
		s.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "of-a-user"}})
		s.Create(plainPod(s.Namespace, "of-a-user"))
		s.Create(&schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "of-a-user"}})
	})

	create := func(object func() client.Object) func(SpecContext) error {
		return func(ctx SpecContext) error { return thief.Create(ctx, object()) }
	}
	erase := func(object func() client.Object) func(SpecContext) error {
		return func(ctx SpecContext) error { return thief.Delete(ctx, object()) }
	}
	patch := func(object func() client.Object, content string) func(SpecContext) error {
		return func(ctx SpecContext) error {
			return thief.Patch(ctx, object(), client.RawPatch("application/merge-patch+json", []byte(content)))
		}
	}
	configMap := func(name string) func() client.Object {
		return func() client.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
		}
	}
	pod := func(change func(*corev1.Pod)) func() client.Object {
		return func() client.Object {
			p := plainPod(s.Namespace, "of-a-user")
			change(p)
			return p
		}
	}
	same := func(*corev1.Pod) {}
	podAtHome := func(kind string, change func(*corev1.PodSpec)) func() client.Object {
		return pod(func(p *corev1.Pod) {
			p.Namespace, p.Name, p.OwnerReferences = testutil.OperatorNamespace, "at-home", []metav1.OwnerReference{ours}
			p.OwnerReferences[0].Kind = kind
			p.Spec.SecurityContext = &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}
			change(&p.Spec)
		})
	}
	systemMap := func(name string) func() client.Object {
		return func() client.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceSystem, Name: name, OwnerReferences: []metav1.OwnerReference{ours},
			}}
		}
	}
	queue := func(name string) func() client.Object {
		return func() client.Object { return &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	}
	const profileKind = v1beta1.ResourceQuotaProfileKind

	DescribeTable("T17: cannot", func(ctx SpecContext, try func(SpecContext) error, says string) {
		Eventually(func() error { return try(ctx) }).WithTimeout(10*time.Second).Should(MatchError(ContainSubstring(says)),
			"refused by admission, once the API server knows the policies")
	},
		Entry("write who is an administrator of EKS", patch(systemMap("aws-auth"), `{"data":{"mapRoles":"me"}}`), system),
		Entry("create in kube-system what a job of ours seems to own", create(systemMap("new")), system),
		Entry("create a ConfigMap", create(configMap("new")), notOurs),
		Entry("change a user's ConfigMap", patch(configMap("of-a-user"), `{"data":{"a":"b"}}`), notOurs),
		Entry("delete a user's ConfigMap", erase(configMap("of-a-user")), notOurs),
		Entry("run a pod of no owner", create(pod(func(p *corev1.Pod) { p.Name = "new" })), notOurs),
		Entry("delete a user's pod", erase(pod(same)), notOurs),
		Entry("change a user's pod", patch(pod(same), `{"metadata":{"labels":{"a":"b"}}}`), notOurs),
		Entry("let go of a worker", patch(pod(func(p *corev1.Pod) { p.Name = testutil.WorkerName("running", 0) }),
			`{"metadata":{"ownerReferences":null}}`), notOurs),
		Entry("run what a user may run at home", create(podAtHome(v1beta1.ElasticTrainingJobKind, func(*corev1.PodSpec) {})),
			"only pods that hold room for reservations"),
		Entry("run as itself", create(podAtHome(profileKind, func(spec *corev1.PodSpec) {
			spec.ServiceAccountName = testutil.OperatorServiceAccount
		})), "only pods that hold room for reservations"),
		Entry("read its own Secrets by a pod", create(podAtHome(profileKind, func(spec *corev1.PodSpec) {
			spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "mail"},
			}}}
		})), "only pods that hold room for reservations"),
		Entry("read its ledger by a pod", create(podAtHome(profileKind, func(spec *corev1.PodSpec) {
			spec.Volumes = []corev1.Volume{{Name: "ledger", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "tideline-ledger"},
			}}}
		})), "only pods that hold room for reservations"),
		Entry("create a Service", create(func() client.Object {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "new"}, Spec: corev1.ServiceSpec{
				Ports: []corev1.ServicePort{{Port: 80}},
			}}
		}), notOurs),
		Entry("create an Ingress", create(func() client.Object {
			ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "new"}}
			ingress.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: "of-a-user", Port: networkingv1.ServiceBackendPort{Number: 80},
			}}
			return ingress
		}), notOurs),
		Entry("create a Secret", create(func() client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testutil.OperatorNamespace, Name: "new"}}
		}), notOurs),
		Entry("delete a user's PodGroup", erase(func() client.Object {
			return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "of-a-user"}}
		}), notOurs),
		Entry("create a Queue of no profile", create(queue("new")), notOurs),
		Entry("create a pool of merges that has more than others", create(func() client.Object {
			return &schedulingv1beta1.Queue{
				ObjectMeta: metav1.ObjectMeta{Name: "tideline-merge"},
				Spec:       schedulingv1beta1.QueueSpec{Weight: 1000, Reclaimable: ptr.To(false)},
			}
		}), notOurs),
		Entry("delete the pool of merges", erase(queue("tideline-merge")), notOurs),
		Entry("close a Queue of no profile", patch(queue("default"), `{"spec":{"weight":7}}`), notOurs),
		Entry("take a Queue over", patch(queue("default"), `{"metadata":{"labels":{"tideline.io/profile":"mine"}}}`), notOurs),
		Entry("delete a training that runs", erase(func() client.Object { return s.Read("running") }),
			"deletes no training that has not ended"),
	)

	It("T17: can do what the operator does", func(ctx SpecContext) {
		Expect(erase(pod(func(p *corev1.Pod) { p.Name = testutil.WorkerName("running", 0) }))(ctx)).To(Succeed(), "delete a worker")
		Expect(create(podAtHome(profileKind, func(*corev1.PodSpec) {}))(ctx)).To(Succeed(), "hold room for a reservation")
		Expect(create(func() client.Object { return gang.NewPool(config.DefaultPool) })(ctx)).To(
			MatchError(apierrors.IsAlreadyExists, "IsAlreadyExists"), "create the default pool, which is there already")
	})

	It("T17: meets rules that fit the types that they judge", func(ctx SpecContext) {
		policies := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
		Expect(s.Client.List(ctx, policies)).To(Succeed())
		for _, p := range policies.Items {
			if p.Status.TypeChecking != nil {
				Expect(p.Status.TypeChecking.ExpressionWarnings).To(BeEmpty(), p.Name)
			}
		}
		Expect(len(policies.Items)).To(BeNumerically(">=", 5), "those of the installation, and of components that other specs apply")
	})
})

// plainPod is a pod that no scheduler of this cluster places.
func plainPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: "of-nothing", Containers: []corev1.Container{{Name: "a", Image: "registry.example/a:1"}},
		},
	}
}

package pages

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/pages"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/gatewayapi"
)

var _ = Describe("Pages of a training", Ordered, Serial, func() {
	var s *testutil.Scenario
	board := func(job *v1beta1.ElasticTrainingJob) {
		job.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "prof", ContainerPort: 9012}}
		job.Spec.Pages = []v1beta1.JobPage{{Name: "board", Port: 6006}, {Name: "profiler", PortName: "prof"}}
	}
	// routed is the reason of condition PagesRouted; empty without one.
	routed := func(job string) func() (string, error) {
		return func() (string, error) {
			j, err := s.Fetch(job)()
			if err != nil {
				return "", err
			}
			if c := meta.FindStatusCondition(j.Status.Conditions, v1beta1.ConditionPagesRouted); c != nil {
				return c.Reason, nil
			}
			return "", nil
		}
	}
	// there are the routes of a kind, and the Services for pages, in the scenario's namespace by name.
	there := func(kind string) func() ([]string, error) {
		return func() ([]string, error) {
			gvk, _ := pages.KindOf(kind)
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk)
			services := &corev1.ServiceList{}
			if err := s.Client.List(s.Context(), list, client.InNamespace(s.Namespace)); err != nil {
				return nil, err
			}
			err := s.Client.List(s.Context(), services, client.InNamespace(s.Namespace), client.HasLabels{v1beta1.LabelPages})
			var names []string
			for i := range list.Items {
				names = append(names, kind+" "+list.Items[i].GetName())
			}
			for i := range services.Items {
				names = append(names, "Service "+services.Items[i].Name)
			}
			return names, err
		}
	}
	// served are the pods that the Service of a job's pages selects.
	served := func(job string) map[string]types.UID {
		GinkgoHelper()
		service := testutil.Get(s, &corev1.Service{}, job+"-pages")
		pods := &corev1.PodList{}
		Expect(s.Client.List(s.Context(), pods, client.InNamespace(s.Namespace),
			client.MatchingLabels(service.Spec.Selector))).To(Succeed())
		selected := map[string]types.UID{}
		for i := range pods.Items {
			selected[pods.Items[i].Name] = pods.Items[i].UID
		}
		return selected
	}
	urls := func(job string) []string {
		GinkgoHelper()
		var all []string
		for _, p := range s.Read(job).Status.Pages {
			all = append(all, p.URL)
		}
		return all
	}

	BeforeAll(func() {
		s = shared.World.NewScenario(GinkgoT(), "pages", 4)
		testutil.ApplyComponent(s, "job-pages")
	})

	It("are reached by an Ingress that leads to worker 0, and follow it", func() {
		s.Submit(s.Job("a").Range(2, 2).With(board), s.Job("none").Range(1, 1))
		Eventually(s.Fetch("a")).Should(testutil.Train(2))
		Eventually(routed("a")).Should(Equal(v1beta1.ReasonRouted))
		Expect(urls("a")).To(Equal([]string{
			"https://pages.example.com/" + s.Namespace + "/a/board/", "https://pages.example.com/" + s.Namespace + "/a/profiler/",
		}))
		ingress := testutil.Get(s, &networkingv1.Ingress{}, "a-pages")
		Expect(metav1.IsControlledBy(ingress, s.Read("a"))).To(BeTrue(), "it goes with the job")
		Expect(*ingress.Spec.IngressClassName).To(Equal("nginx"))
		Expect(ingress.Annotations).To(HaveKeyWithValue("example.com/auth", "sso"))
		Expect(ingress.Spec.Rules[0].HTTP.Paths[0].Path).To(Equal("/" + s.Namespace + "/a/board"))
		before := served("a")
		Expect(before).To(And(HaveLen(1), HaveKey("a-worker-0")), "worker 0 and no other")

		s.DeleteWorker("a", 0)
		Eventually(s.Fetch("a")).Should(And(testutil.HaveRestarts(1), testutil.Train(2)), "worker 0 is created anew")
		Expect(served("a")).To(And(HaveLen(1), HaveKeyWithValue("a-worker-0", Not(Equal(before["a-worker-0"])))))
		Expect(there("Ingress")()).To(ConsistOf("Ingress a-pages", "Service a-pages"), "a job without pages has none")
	})

	It("follow the spec, and are made again if somebody deletes them", func() {
		s.Patch(s.Read("a"), `{"spec":{"pages":[{"name":"board","port":6007}]}}`)
		Eventually(func() []string { return urls("a") }).Should(HaveLen(1), "the profiler is no page now")
		Expect(testutil.Get(s, &corev1.Service{}, "a-pages").Spec.Ports).To(ConsistOf(HaveField("TargetPort.IntVal", int32(6007))))
		Expect(testutil.Get(s, &networkingv1.Ingress{}, "a-pages").Spec.Rules[0].HTTP.Paths).To(HaveLen(1))
		s.Delete(testutil.Get(s, &corev1.Service{}, "a-pages"))
		Eventually(there("Ingress")).Should(ConsistOf("Ingress a-pages", "Service a-pages"))
	})

	It("take over nothing of others, and cost no training", func() {
		s.Create(
			&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "b-pages"}, Spec: networkingv1.IngressSpec{
				DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
					Name: "theirs", Port: networkingv1.ServiceBackendPort{Number: 80},
				}},
			}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "c-pages"}, Spec: corev1.ServiceSpec{
				Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "theirs"},
			}})
		s.Submit(s.Job("b").Range(1, 1).GPUs(0).With(board), s.Job("c").Range(1, 1).GPUs(0).With(board))
		for _, job := range []string{"b", "c"} {
			Eventually(routed(job)).Should(Equal(v1beta1.ReasonNameTaken), "the job says so")
			Eventually(s.Fetch(job)).Should(testutil.Train(1), "and trains")
			Expect(urls(job)).To(BeEmpty())
			s.DeleteJob(job)
		}
		Expect(testutil.Get(s, &networkingv1.Ingress{}, "b-pages").Spec.DefaultBackend.Service.Name).To(Equal("theirs"))
		Expect(testutil.Get(s, &corev1.Service{}, "c-pages").Spec.Selector).To(Equal(map[string]string{"app": "theirs"}))
		s.Delete(testutil.Get(s, &networkingv1.Ingress{}, "b-pages"))
	})

	It("are gone while the job is suspended, and come back with it", func() {
		s.Patch(s.Read("a"), `{"spec":{"suspend":true}}`)
		Eventually(there("Ingress")).Should(BeEmpty())
		Eventually(func() []string { return urls("a") }).Should(BeEmpty())
		s.Patch(s.Read("a"), `{"spec":{"suspend":false}}`)
		Eventually(routed("a")).Should(Equal(v1beta1.ReasonRouted))
		Expect(there("Ingress")()).To(ConsistOf("Ingress a-pages", "Service a-pages"))
	})

	It("wait for the Gateway API without harm, and are reached by an HTTPRoute once it is installed", func(ctx SpecContext) {
		restart(ctx, byGateway)
		Eventually(routed("a")).Should(Equal(v1beta1.ReasonGatewayAPIMissing), "the operator runs, and the job says what is missing")
		Expect(there("Ingress")()).To(BeEmpty(), "what led there before is gone")
		Eventually(s.Fetch("a")).Should(testutil.Train(2))
		definitions, err := gatewayapi.ReadDefinitions(ctx, "httproutes")
		Expect(err).NotTo(HaveOccurred(), "the definition of HTTPRoute is read")
		s.Create(definitions[0])
		Eventually(routed("a")).Should(Equal(v1beta1.ReasonRouted), "by itself")
		route := &unstructured.Unstructured{}
		route.SetGroupVersionKind(pages.HTTPRouteKind)
		Expect(s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: "a-pages"}, route)).To(Succeed())
		Expect(metav1.IsControlledBy(route, s.Read("a"))).To(BeTrue())
		hosts, _, err := unstructured.NestedStringSlice(route.Object, "spec", "hostnames")
		Expect(err).NotTo(HaveOccurred())
		Expect(hosts).To(HaveExactElements(MatchRegexp(`^a-[0-9a-f]{8}\.pages\.example\.com$`)))
		Expect(urls("a")).To(Equal([]string{"https://" + hosts[0] + "/" + s.Namespace + "/a/board/"}))
	})

	It("go with the job", func() {
		s.DeleteJob("a")
		Eventually(there("HTTPRoute")).Should(BeEmpty())
	})

	It("are not reached where nothing is configured", func(ctx SpecContext) {
		s.Submit(s.Job("d").Range(1, 1).With(board))
		Eventually(routed("d")).Should(Equal(v1beta1.ReasonRouted))
		restart(ctx, config.DefaultPages())
		Eventually(routed("d")).Should(Equal(v1beta1.ReasonPagesNotConfigured), "the job says so")
		Expect(there("HTTPRoute")()).To(BeEmpty(), "and whoever turns pages off has them gone")
		Expect(urls("d")).To(BeEmpty())
		Eventually(s.Fetch("d")).Should(testutil.Train(1))
	})
})

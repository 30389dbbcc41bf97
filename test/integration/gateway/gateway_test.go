package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/pages"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// board is a program with a page, as TensorBoard is: an HTTP server of this process at an address that pods may have.
type board struct {
	*http.Server

	host string
	port int32
}

// ownAddress is an address of this machine that an EndpointSlice may name, which loopback is not; empty without one.
func ownAddress() string {
	addresses, err := net.InterfaceAddrs()
	Expect(err).NotTo(HaveOccurred(), "the machine's addresses are listed")
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

// newBoard serves a page that says its name and the path that it was asked for.
func newBoard(ctx context.Context, name string) *board {
	GinkgoHelper()
	host := ownAddress()
	if host == "" {
		Skip("the machine has no address but loopback, which Kubernetes allows no pod")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	Expect(err).NotTo(HaveOccurred(), "the page listens")
	b := &board{host: host, Server: &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, "%s at %s", name, r.URL.Path) })}}
	if at, ok := listener.Addr().(*net.TCPAddr); ok {
		b.port = int32(at.Port)
	}
	go func() { _ = b.Serve(listener) }()
	DeferCleanup(b.Close)
	return b
}

// standsFor gives a pod the address of the page, as if its process ran in the pod: kwok's pods have no network.
func (b *board) standsFor(s *testutil.Scenario, pod *corev1.Pod) {
	GinkgoHelper()
	before := pod.DeepCopy()
	pod.Status.PodIP, pod.Status.PodIPs = b.host, []corev1.PodIP{{IP: b.host}}
	Expect(s.Client.Status().Patch(s.Context(), pod, client.MergeFrom(before))).To(Succeed(), "the pod has an address")
}

// answer is what a browser gets.
type answer struct {
	Code int
	Body string
}

// browse asks the gateway for a URL, whose name no DNS has.
func browse(ctx context.Context, address string) func() (answer, error) {
	return func() (answer, error) {
		u, err := url.Parse(address)
		if err != nil {
			return answer{}, err
		}
		host := u.Host
		u.Host = cluster.Address(port)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
		if err != nil {
			return answer{}, err
		}
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return answer{}, err
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
		_ = response.Body.Close()
		return answer{response.StatusCode, string(body)}, err
	}
}

// show is the page of that name at its path.
func show(name string, u *url.URL) types.GomegaMatcher {
	return Equal(answer{http.StatusOK, name + " at " + u.Path})
}

var notFound = HaveField("Code", http.StatusNotFound)

var _ = Describe("A page of a training", Ordered, Serial, func() {
	var s *testutil.Scenario
	boards := map[string]*board{}

	// urlOf is where the status says that a job's page is, once there is one.
	urlOf := func(job string) *url.URL {
		GinkgoHelper()
		Eventually(s.Fetch(job)).Should(HaveField("Status.Pages", HaveLen(1)), "the page is routed")
		u, err := url.Parse(s.Read(job).Status.Pages[0].URL)
		Expect(err).NotTo(HaveOccurred(), "the status has a URL")
		return u
	}
	// submit runs a job of two workers with a page at the port of its board, for which worker 0 stands.
	submit := func(job string) {
		GinkgoHelper()
		s.Submit(s.Job(job).Range(2, 2).With(func(j *v1beta1.ElasticTrainingJob) {
			j.Spec.Pages = []v1beta1.JobPage{{Name: "board", Port: boards[job].port}}
		}))
		Eventually(s.Fetch(job)).Should(testutil.Train(2))
		boards[job].standsFor(s, s.Worker(job, 0))
	}

	BeforeAll(func(ctx SpecContext) {
		s = shared.World.NewScenario(GinkgoT(), "gateway", 8)
		testutil.ApplyComponent(s, "job-pages")
		s.Create(webGateway()...)
		for _, job := range []string{"a", "b"} {
			boards[job] = newBoard(ctx, job)
		}
	})

	It("is reached through a Gateway at the URL of the status, by each job its own", func(ctx SpecContext) {
		submit("a")
		submit("b")
		for _, job := range []string{"a", "b"} {
			u := urlOf(job)
			Eventually(browse(ctx, u.String())).Should(show(job, u))
			Eventually(browse(ctx, u.String()+"data/plugin?run=1")).Should(HaveField("Body", job+" at "+u.Path+"data/plugin"),
				"with all that is below it, as it is")
		}
		By("the gateway's own word")
		route := &unstructured.Unstructured{}
		route.SetGroupVersionKind(pages.HTTPRouteKind)
		Expect(s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: "a-pages"}, route)).To(Succeed())
		parents, _, err := unstructured.NestedSlice(route.Object, "status", "parents")
		Expect(err).NotTo(HaveOccurred())
		Expect(parents).To(HaveLen(1))
		conditions, _, err := unstructured.NestedSlice(parents[0].(map[string]any), "conditions")
		Expect(err).NotTo(HaveOccurred())
		Expect(conditions).To(ContainElements(
			And(HaveKeyWithValue("type", "Accepted"), HaveKeyWithValue("status", string(metav1.ConditionTrue))),
			And(HaveKeyWithValue("type", "ResolvedRefs"), HaveKeyWithValue("status", string(metav1.ConditionTrue)))))
	})

	It("is at no other host and no other path", func(ctx SpecContext) {
		a, b := urlOf("a"), urlOf("b")
		crossed := *a
		crossed.Path = b.Path
		Expect(browse(ctx, crossed.String())()).To(notFound, "a page of another job is not at this job's host")
		longer := *a
		longer.Path = a.Path[:len(a.Path)-1] + "-more/"
		Expect(browse(ctx, longer.String())()).To(notFound, "nor is what only begins as it")
		longer.Path = "/"
		Expect(browse(ctx, longer.String())()).To(notFound)
		longer.Path, longer.Host = a.Path, "other.pages.example.com"
		Expect(browse(ctx, longer.String())()).To(notFound)
	})

	It("follows worker 0, and is gone while the job is suspended", func(ctx SpecContext) {
		u := urlOf("a")
		before := s.Worker("a", 0).UID
		s.DeleteWorker("a", 0)
		Eventually(s.Fetch("a")).Should(And(testutil.HaveRestarts(1), testutil.Train(2)))
		Expect(s.Worker("a", 0).UID).NotTo(Equal(before), "it is another pod")
		boards["a"].standsFor(s, s.Worker("a", 0))
		Eventually(browse(ctx, u.String())).Should(show("a", u))

		s.Patch(s.Read("a"), `{"spec":{"suspend":true}}`)
		Eventually(browse(ctx, u.String())).Should(notFound)
		b := urlOf("b")
		Expect(browse(ctx, b.String())()).To(show("b", b), "another job's stays")
		s.Patch(s.Read("a"), `{"spec":{"suspend":false}}`)
		Eventually(s.Fetch("a")).Should(testutil.Train(2))
		boards["a"].standsFor(s, s.Worker("a", 0))
		Expect(urlOf("a")).To(Equal(u), "bookmarks stay good")
		Eventually(browse(ctx, u.String())).Should(show("a", u))
	})

	It("is reached by an Ingress where that is configured, and at its former URL no more", func(ctx SpecContext) {
		former := urlOf("a")
		shared.Reconfigure(ctx, func(c *config.Configuration) { c.Pages = byIngress })
		Eventually(func() string { return urlOf("a").Host }).Should(Equal("pages.example.com"))
		for _, job := range []string{"a", "b"} {
			u := urlOf(job)
			Eventually(browse(ctx, u.String())).Should(show(job, u))
		}
		Eventually(browse(ctx, former.String())).Should(notFound)
		a := urlOf("a")
		s.DeleteJob("a")
		Eventually(browse(ctx, a.String())).Should(notFound, "it goes with its job")
	})
})

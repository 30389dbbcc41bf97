package pages

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

var (
	ingress = config.Pages{Host: "pages.example.com", Scheme: "https", IngressClass: "nginx",
		Annotations: config.PageAnnotations{"example.com/auth": "sso"}}
	gateway = config.Pages{Host: "*.pages.example.com", Scheme: "http",
		Gateway: config.PagesGateway{Namespace: "infra", Name: "web"}}
	now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
)

func jobWith(names ...string) *v1beta1.ElasticTrainingJob {
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", UID: "u-1"}}
	for i, name := range names {
		job.Spec.Pages = append(job.Spec.Pages, v1beta1.JobPage{Name: name, Port: 6006 + int32(i)})
	}
	return job
}

func TestIngressToWorker0(t *testing.T) {
	g := NewWithT(t)
	job := jobWith("board", "profiler")
	job.Spec.Pages[1] = v1beta1.JobPage{Name: "profiler", PortName: "prof"}
	w := MakeWanted(job, ingress)
	g.Expect(w.Pages).To(Equal([]v1beta1.PageStatus{
		{Name: "board", URL: "https://pages.example.com/ads/ctr/board/"},
		{Name: "profiler", URL: "https://pages.example.com/ads/ctr/profiler/"},
	}))
	g.Expect(w.Service.Name).To(Equal("ctr-pages"))
	g.Expect(w.Service.Spec.Selector).To(Equal(map[string]string{"tideline.io/job": "ctr", "tideline.io/worker-index": "0"}),
		"worker 0, whichever pod that is")
	g.Expect(w.Service.Spec.Ports).To(HaveExactElements(
		And(HaveField("Port", int32(80)), HaveField("TargetPort", intstr.FromInt32(6006))),
		And(HaveField("Port", int32(81)), HaveField("TargetPort", intstr.FromString("prof")))))
	var route networkingv1.Ingress
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(w.Route.Object, &route, true)).To(Succeed(),
		"it has fields of Ingress alone")
	g.Expect(route.Annotations).To(Equal(map[string]string{"example.com/auth": "sso"}))
	g.Expect(*route.Spec.IngressClassName).To(Equal("nginx"))
	g.Expect(route.Spec.TLS).To(Equal([]networkingv1.IngressTLS{{Hosts: []string{"pages.example.com"}}}))
	g.Expect(route.Spec.Rules).To(HaveLen(1))
	g.Expect(route.Spec.Rules[0].Host).To(Equal("pages.example.com"))
	paths := route.Spec.Rules[0].HTTP.Paths
	g.Expect(paths).To(HaveLen(2))
	g.Expect(paths[1].Path).To(Equal("/ads/ctr/profiler"))
	g.Expect(*paths[1].PathType).To(Equal(networkingv1.PathTypePrefix))
	g.Expect(*paths[1].Backend.Service).To(Equal(networkingv1.IngressServiceBackend{
		Name: "ctr-pages", Port: networkingv1.ServiceBackendPort{Number: 81},
	}))
	for _, o := range []metav1.Object{w.Service, w.Route} {
		g.Expect(metav1.IsControlledBy(o, job)).To(BeTrue(), "it goes with the job")
		g.Expect(o.GetLabels()).To(HaveKeyWithValue(v1beta1.LabelPages, w.Digest))
	}
}

func TestHTTPRouteOfAGateway(t *testing.T) {
	g := NewWithT(t)
	w := MakeWanted(jobWith("board"), gateway)
	g.Expect(w.Route.GroupVersionKind()).To(Equal(HTTPRouteKind))
	g.Expect(w.Pages[0].URL).To(MatchRegexp(`^http://ctr-[0-9a-f]{8}\.pages\.example\.com/ads/ctr/board/$`))
	spec := w.Route.Object["spec"]
	written, err := json.Marshal(spec)
	g.Expect(err).NotTo(HaveOccurred())
	host := strings.Split(w.Pages[0].URL, "/")[2]
	g.Expect(written).To(MatchJSON(`{
		"parentRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "infra", "name": "web"}],
		"hostnames": ["` + host + `"],
		"rules": [{
			"matches": [{"path": {"type": "PathPrefix", "value": "/ads/ctr/board"}}],
			"backendRefs": [{"kind": "Service", "name": "ctr-pages", "port": 80}]
		}]}`))
}

// Names that the API server lets pass are the only thing of a user's in host and path. Two jobs never have a path, nor a host of
// their own, in common.
func TestHostileNamesStayInTheirPath(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("n", 54)
	type place struct{ namespace, job, page string }
	seen := map[string]place{}
	for _, at := range []place{
		{"ads", "ctr", "board"}, {"ads", "ctr-board", "b"}, {"ads-ctr", "board", "b"}, {"ads", "ctr", "b"}, {"ctr", "ads", "board"},
		{strings.Repeat("s", 63), long, strings.Repeat("p", 32)}, {"kube-system", "pages", "pages"}, {"1", "a", "a"},
		{"ads", "ctr-1f0c2a77", "board"}, {"xn--nxasmq6b", "xn--a", "x--"},
	} {
		for _, c := range []config.Pages{ingress, gateway} {
			job := jobWith(at.page)
			job.Namespace, job.Name = at.namespace, at.job
			w := MakeWanted(job, c)
			parts := strings.Split(w.Pages[0].URL, "/")
			g.Expect(parts).To(HaveLen(7), w.Pages[0].URL)
			host, path := parts[2], "/"+strings.Join(parts[3:6], "/")
			g.Expect(path).To(Equal("/" + at.namespace + "/" + at.job + "/" + at.page))
			g.Expect(host).To(HaveSuffix("pages.example.com"))
			g.Expect(validation.IsDNS1123Subdomain(host)).To(BeEmpty(), host)
			g.Expect(len(strings.Split(host, ".")[0])).To(BeNumerically("<=", 63), host)
			g.Expect(len(w.Pages[0].URL)).To(BeNumerically("<=", 512))
			g.Expect(validation.IsDNS1035Label(w.Service.Name)).To(BeEmpty(), w.Service.Name)
			for key, value := range w.Route.GetLabels() {
				g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), key)
			}
			if c.UsesGateway() {
				other, taken := seen[host]
				g.Expect(taken && other != at && (other.namespace != at.namespace || other.job != at.job)).To(BeFalse(),
					"%v has the host of %v", at, other)
				seen[host] = at
			}
		}
	}
}

func TestDigestTellsWhatIsWanted(t *testing.T) {
	g := NewWithT(t)
	first := MakeWanted(jobWith("board"), ingress)
	g.Expect(first.Digest).To(MatchRegexp("^[0-9a-f]{16}$"))
	g.Expect(MakeWanted(jobWith("board"), ingress).Digest).To(Equal(first.Digest), "the same has the same")
	another := jobWith("board")
	another.UID = "u-2"
	class := ingress
	class.IngressClass = "traefik"
	for what, digest := range map[string]string{
		"another page":          MakeWanted(jobWith("profiler"), ingress).Digest,
		"a job created again":   MakeWanted(another, ingress).Digest,
		"another configuration": MakeWanted(jobWith("board"), class).Digest,
		"another kind":          MakeWanted(jobWith("board"), gateway).Digest,
	} {
		g.Expect(digest).NotTo(Equal(first.Digest), what)
	}
}

// cluster plays what the operator sees and does for one job.
type cluster struct {
	g    *WithT
	in   Input
	plan Plan
	// route is the kind of the route that is there, with its digest.
	route, digest string
	fails         string
	tries         int
}

// step plans once, writes the status and carries the plan out.
func (c *cluster) step() {
	c.plan = PlanPages(c.in)
	job := c.in.Job.DeepCopy()
	job.Status.PageRoute, job.Status.Pages = c.plan.RouteKind, c.plan.Pages
	if c.plan.Serve != nil {
		c.g.Expect(c.in.Job.Status.PageRoute).To(Equal(c.plan.Serve.Route.GetKind()), "what is made is in status before")
	}
	out := Outcome{Time: c.in.Now, Reason: c.fails}
	switch {
	case c.plan.Remove != "":
		out.Of = RemovalOf(c.plan.Remove)
		if c.fails == "" {
			c.in.Seen.Service, c.in.Seen.ServiceDigest, c.route, c.digest = "", "", "", ""
		}
	case c.plan.Serve != nil:
		out.Of = c.plan.Serve.Digest
		if c.fails == "" {
			c.in.Seen.Service, c.in.Seen.ServiceDigest = "s-1", out.Of
			c.route, c.digest = c.plan.Serve.Route.GetKind(), out.Of
		}
	default:
		c.in.Job = job
		return
	}
	c.tries++
	c.in.Job, c.in.Seen.Last = job, &out
}

// settle steps until nothing changes.
func (c *cluster) settle() {
	for range 8 {
		c.step()
	}
	c.g.Expect(c.plan.Serve == nil && c.plan.Remove == "").To(BeTrue(), "it comes to rest")
}

func newCluster(t *testing.T, c config.Pages, names ...string) *cluster {
	t.Helper()
	return &cluster{g: NewWithT(t), in: Input{Job: jobWith(names...), Config: c, Runs: true, Now: now}}
}

func TestPagesComeAndGoWithTheJob(t *testing.T) {
	c := newCluster(t, ingress, "board")
	c.settle()
	c.g.Expect(c.route).To(Equal("Ingress"))
	c.g.Expect(c.plan.Status).To(Equal(metav1.ConditionTrue))
	c.g.Expect(c.plan.Message).To(Equal("Ingress ctr-pages of class nginx leads to worker 0: board at " +
		"https://pages.example.com/ads/ctr/board/."))
	c.g.Expect(c.in.Job.Status.Pages).To(HaveLen(1))
	c.g.Expect(c.plan.RequeueAfter).To(Equal(checkInterval))

	c.in.Runs = false
	c.settle()
	c.g.Expect(c.route).To(BeEmpty(), "it is gone when the job stops")
	c.g.Expect(c.in.Job.Status.Pages).To(BeEmpty())
	c.g.Expect(c.in.Job.Status.PageRoute).To(BeEmpty())
	c.g.Expect(c.plan.Status).To(BeEmpty(), "and nothing is said of it")

	c.in.Runs = true
	c.settle()
	c.g.Expect(c.route).To(Equal("Ingress"), "it is back when the job goes on")
}

func TestNothingIsMadeUnlessConfigured(t *testing.T) {
	c := newCluster(t, config.DefaultPages(), "board")
	c.settle()
	c.g.Expect(c.tries).To(BeZero())
	c.g.Expect(c.in.Job.Status.PageRoute).To(BeEmpty())
	c.g.Expect(c.plan.Status).To(Equal(metav1.ConditionFalse))
	c.g.Expect(c.plan.Reason).To(Equal(v1beta1.ReasonPagesNotConfigured))
	c.g.Expect(c.plan.Message).To(ContainSubstring("pages.host"))
	none := newCluster(t, ingress)
	none.settle()
	none.g.Expect(none.tries).To(BeZero(), "a job without pages has no route")
	none.g.Expect(none.plan).To(Equal(Plan{}), "and no word of it")
}

func TestConfigurationThatChanges(t *testing.T) {
	c := newCluster(t, ingress, "board")
	c.settle()
	c.in.Seen.Last = nil // The operator was started anew for it.
	c.in.Config = gateway
	c.settle()
	c.g.Expect(c.route).To(Equal("HTTPRoute"))
	c.g.Expect(c.in.Job.Status.PageRoute).To(Equal("HTTPRoute"))
	c.g.Expect(c.in.Job.Status.Pages[0].URL).To(ContainSubstring(".pages.example.com/"))
	c.in.Seen.Last, c.in.Config = nil, config.DefaultPages()
	c.settle()
	c.g.Expect(c.route).To(BeEmpty(), "whoever turns pages off has them gone")
	c.g.Expect(c.plan.Reason).To(Equal(v1beta1.ReasonPagesNotConfigured))
}

func TestAnOperatorThatIsStartedAnewSaysTheSame(t *testing.T) {
	c := newCluster(t, ingress, "board")
	c.settle()
	before := c.plan
	c.in.Seen.Last = nil
	c.step()
	c.g.Expect(c.plan.Serve).NotTo(BeNil(), "it looks once whether the route is there")
	c.g.Expect(c.plan.Status).To(Equal(metav1.ConditionTrue), "and does not say meanwhile that it is not")
	c.g.Expect(c.plan.Pages).To(Equal(before.Pages))
}

func TestWhatFailsIsTriedAgain(t *testing.T) {
	c := newCluster(t, ingress, "board")
	c.fails = v1beta1.ReasonNameTaken
	c.settle()
	c.g.Expect(c.tries).To(Equal(1), "once for now")
	c.g.Expect(c.plan.Reason).To(Equal(v1beta1.ReasonNameTaken))
	c.g.Expect(c.plan.Pages).To(BeEmpty())
	c.g.Expect(c.plan.RequeueAfter).To(Equal(retryInterval))
	c.in.Now, c.fails = now.Add(retryInterval), ""
	c.settle()
	c.g.Expect(c.plan.Reason).To(Equal(v1beta1.ReasonRouted))

	c.fails, c.in.Runs = v1beta1.ReasonAPIError, false
	c.settle()
	c.g.Expect(c.in.Job.Status.PageRoute).To(Equal("Ingress"), "what could not be deleted is not forgotten")
	c.in.Now, c.fails = c.in.Now.Add(-time.Hour), "" // The clock was put back.
	c.g.Expect(PlanPages(c.in).RequeueAfter).To(BeNumerically("<=", retryInterval))
	c.in.Now = now.Add(2 * retryInterval)
	c.settle()
	c.g.Expect(c.in.Job.Status.PageRoute).To(BeEmpty())
}

func TestWhatSomebodyDeletedIsMadeAgain(t *testing.T) {
	c := newCluster(t, ingress, "board")
	c.settle()
	tries := c.tries
	c.in.Seen.Service, c.in.Seen.ServiceDigest = "", ""
	c.settle()
	c.g.Expect(c.in.Seen.Service).NotTo(BeEmpty(), "the Service at once")
	c.g.Expect(c.tries).To(Equal(tries + 1))
	c.in.Now = now.Add(checkInterval)
	c.settle()
	c.g.Expect(c.tries).To(Equal(tries+2), "the route when it is looked for again")
	c.in.Job.Spec.Pages[0].Port = 9000
	c.settle()
	c.g.Expect(c.tries).To(Equal(tries+3), "another port at once")
}

func TestClusterWithoutGatewayAPI(t *testing.T) {
	c := newCluster(t, gateway, "board")
	c.in.Seen.KindMissing = "HTTPRoute (gateway.networking.k8s.io/v1)"
	c.settle()
	c.g.Expect(c.tries).To(BeZero())
	c.g.Expect(c.plan.Reason).To(Equal(v1beta1.ReasonGatewayAPIMissing))
	c.g.Expect(c.plan.Message).To(ContainSubstring("HTTPRoute (gateway.networking.k8s.io/v1)"))
	c.in.Seen.KindMissing = ""
	c.settle()
	c.g.Expect(c.route).To(Equal("HTTPRoute"))
}

func TestKindsByTheirWord(t *testing.T) {
	g := NewWithT(t)
	for _, c := range []config.Pages{ingress, gateway} {
		kind, known := KindOf(ChooseKind(c).Kind)
		g.Expect(known).To(BeTrue())
		g.Expect(kind).To(Equal(ChooseKind(c)))
	}
	_, known := KindOf("Secret")
	g.Expect(known).To(BeFalse(), "whatever a status says, nothing else is deleted")
	g.Expect(MakeWanted(jobWith("a"), ingress).Route).To(BeAssignableToTypeOf(&unstructured.Unstructured{}))
}

package elastictrainingjob

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/pages"
)

// routing is a job with a page, whose Service is there already, on an API server with these objects.
type routing struct {
	*pageServer

	g *WithT
	c client.Client
	o jobstate.Observed
	w *pages.Wanted
}

func newRouting(t *testing.T, refuse func(verb string) error, objects ...client.Object) *routing {
	t.Helper()
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", UID: "u-1"}}
	job.Spec.Pages = []v1beta1.JobPage{{Name: "board", Port: 6006}}
	w := pages.MakeWanted(job, config.Pages{Host: "pages.example.com", Scheme: "https", IngressClass: "nginx"})
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return errors.Join(refuse("create"), c.Create(ctx, o, options...))
		},
	}).Build()
	r := newPageServer(c, children{kube.Applier{Creator: kube.Creator{Client: c, Live: c, Scheme: clientgoscheme.Scheme}}}, nil)
	return &routing{r, NewWithT(t), c, jobstate.Observed{Job: job, Pages: pages.Seen{Service: "s-1", ServiceDigest: w.Digest}}, w}
}

func (r *routing) serve(t *testing.T) pages.Outcome {
	t.Helper()
	w := *r.w
	w.Route = r.w.Route.DeepCopy() // Each evaluation makes it anew.
	r.g.Expect(r.pageServer.serve(t.Context(), r.o, pages.Plan{Serve: &w}, time.Now())).To(BeTrue())
	r.g.Expect(r.last(r.o.Job)).NotTo(BeNil())
	return *r.last(r.o.Job)
}

func (r *routing) read(t *testing.T) *networkingv1.Ingress {
	t.Helper()
	route := &networkingv1.Ingress{}
	err := r.c.Get(t.Context(), client.ObjectKey{Namespace: "ads", Name: "ctr-pages"}, route)
	if apierrors.IsNotFound(err) {
		return nil
	}
	r.g.Expect(err).NotTo(HaveOccurred())
	return route
}

func allowed(string) error { return nil }

func TestRouteIsMadeAndRemoved(t *testing.T) {
	r := newRouting(t, allowed)
	r.g.Expect(r.serve(t)).To(And(HaveField("Of", r.w.Digest), HaveField("Reason", "")))
	made := r.read(t)
	r.g.Expect(made.Spec.Rules[0].HTTP.Paths[0].Path).To(Equal("/ads/ctr/board"))
	version := made.ResourceVersion
	r.g.Expect(r.serve(t).Reason).To(BeEmpty())
	r.g.Expect(r.read(t).ResourceVersion).To(Equal(version), "what is right is left alone")

	made.Labels[v1beta1.LabelPages] = "0123456789abcdef"
	made.Spec.Rules[0].Host = "old.example.com"
	r.g.Expect(r.c.Update(t.Context(), made)).To(Succeed())
	r.g.Expect(r.serve(t).Reason).To(BeEmpty())
	r.g.Expect(r.read(t).Spec.Rules[0].Host).To(Equal("pages.example.com"), "what is of another configuration is made anew")

	r.o.Pages = pages.Seen{}
	r.g.Expect(r.pageServer.serve(t.Context(), r.o, pages.Plan{Remove: "Ingress"}, time.Now())).To(BeTrue())
	r.g.Expect(r.read(t)).To(BeNil())
	r.g.Expect(r.last(r.o.Job)).To(HaveValue(And(HaveField("Of", pages.RemovalOf("Ingress")), HaveField("Reason", ""))))
	r.g.Expect(r.pageServer.serve(t.Context(), r.o, pages.Plan{}, time.Now())).To(BeFalse(), "at rest nothing is done")
}

func TestForeignRouteIsNotTouched(t *testing.T) {
	foreign := func(owner string) *networkingv1.Ingress {
		route := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: "ctr-pages", UID: "theirs", Labels: map[string]string{v1beta1.LabelJob: "ctr"},
		}}
		if owner != "" {
			job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Name: owner, UID: "u-0"}}
			route.OwnerReferences = []metav1.OwnerReference{
				v1beta1.ControllerReference(job, v1beta1.ElasticTrainingJobKind),
			}
		}
		return route
	}
	for owner, reason := range map[string]string{
		"": v1beta1.ReasonNameTaken, "other": v1beta1.ReasonNameTaken, "ctr": v1beta1.ReasonPredecessorLeaving,
	} {
		r := newRouting(t, allowed, foreign(owner))
		out := r.serve(t)
		r.g.Expect(out.Reason).To(Equal(reason), out.Message)
		r.g.Expect(out.Message).To(ContainSubstring("Ingress ctr-pages"))
		r.g.Expect(r.pageServer.serve(t.Context(), r.o, pages.Plan{Remove: "Ingress"}, time.Now())).To(BeTrue())
		r.g.Expect(r.read(t)).To(HaveField("UID", foreign(owner).UID), "it stays")
	}
}

// A controller of Ingresses may hold one for as long as it takes down what is behind it.
func TestARouteThatLeavesIsWaitedFor(t *testing.T) {
	old := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ads", Name: "ctr-pages", UID: "old", Finalizers: []string{"example.com/balancer"},
		DeletionTimestamp: ptr.To(metav1.Now()),
	}}
	r := newRouting(t, allowed)
	old.OwnerReferences = []metav1.OwnerReference{v1beta1.ControllerReference(r.o.Job, v1beta1.ElasticTrainingJobKind)}
	r = newRouting(t, allowed, old)
	out := r.serve(t)
	r.g.Expect(out.Reason).To(Equal(v1beta1.ReasonPredecessorLeaving), "it is not there for long")
	r.g.Expect(out.Message).To(ContainSubstring("Ingress ctr-pages is still being deleted"))
}

func TestRightThatIsMissing(t *testing.T) {
	r := newRouting(t, func(string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}, "ctr-pages",
			errors.New(`User "tideline" cannot create resource "ingresses" in API group "networking.k8s.io"`))
	})
	out := r.serve(t)
	r.g.Expect(out.Reason).To(Equal(v1beta1.ReasonPagesForbidden))
	r.g.Expect(out.Message).To(And(HavePrefix("spec.pages: the operator may not create Ingress ctr-pages: "),
		ContainSubstring("Apply the component config/components/job-pages")))
}

func TestServiceIsTakenFromNoOtherAndOutcomesAreOfOneJob(t *testing.T) {
	r := newRouting(t, allowed, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr-pages", UID: "theirs"}})
	r.o.Pages = pages.Seen{}
	out := r.serve(t)
	r.g.Expect(out.Reason).To(Equal(v1beta1.ReasonNameTaken), out.Message)
	r.g.Expect(r.read(t)).To(BeNil(), "no route leads to what somebody else serves")
	again := r.o.Job.DeepCopy()
	again.UID = "u-2"
	r.g.Expect(r.last(again)).To(BeNil(), "a job that was created again has none yet")
	r.forget(client.ObjectKeyFromObject(r.o.Job))
	r.g.Expect(r.last(r.o.Job)).To(BeNil())
}

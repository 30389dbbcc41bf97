package doctor

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/rbac"
)

// configurations are webhook configurations as they are installed under two names, and one of somebody else.
func configurations(mutating, validating string, ca []byte) []client.Object {
	config := admissionregistrationv1.WebhookClientConfig{CABundle: ca}
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: mutating},
			Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "default.elastictrainingjobs.tideline.io", ClientConfig: config}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: validating},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{
				{Name: "validate.elastictrainingjobs.tideline.io", ClientConfig: config},
				{Name: "validate.mergejobs.tideline.io", ClientConfig: config},
			},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "others"},
			Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "policies.example.com"}},
		},
	}
}

// injected has cert-manager write its CA into configurations.
func injected(objects []client.Object) []client.Object {
	for _, o := range objects {
		o.SetAnnotations(map[string]string{injectCA: "tideline-system/tideline-webhook"})
	}
	return objects
}

// refusing is a cluster with objects, whose API server allows nobody anything.
func refusing(objects []client.Object) client.Client {
	review := func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		o.(*authorizationv1.SubjectAccessReview).Status.Allowed = false
		return nil
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{Create: review}).Build()
}

func TestOwnWebhooksAreKnownByTheirOwnNames(t *testing.T) {
	ca := []byte("CA")
	for name, test := range map[string]struct {
		objects            []client.Object
		missing, untrusted []string
		others             bool
	}{
		"ours": {objects: configurations("tideline-mutating-webhook", "tideline-validating-webhook", ca)},
		"OLM's": {
			objects: configurations("default.elastictrainingjobs.tideline.io-x7k2p", "validate.elastictrainingjobs.tideline.io-m9q4d", ca),
			others:  true,
		},
		"cert-manager's": {
			objects: injected(configurations("tideline-mutating-webhook", "tideline-validating-webhook", ca)),
			others:  true,
		},
		"without a CA": {
			objects:   configurations("tideline-mutating-webhook", "tideline-validating-webhook", nil),
			untrusted: []string{"tideline-mutating-webhook", "tideline-validating-webhook"},
		},
		"one of two": {
			objects: configurations("tideline-mutating-webhook", "", ca)[:1],
			missing: []string{"tideline-validating-webhook"},
		},
		"none": {missing: []string{"tideline-mutating-webhook", "tideline-validating-webhook"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), Facts{}
			g.Expect(gatherOwnWebhooks(t.Context(), refusing(test.objects), &f)).To(Succeed())
			g.Expect(f.MissingWebhooks).To(Equal(test.missing))
			g.Expect(f.UntrustedWebhooks).To(Equal(test.untrusted))
			g.Expect(f.OthersCertificate).To(Equal(test.others))
		})
	}
}

func TestOperatorIsFoundByItsDeploymentAndLease(t *testing.T) {
	g := NewWithT(t)
	none := Facts{Namespace: "ml"}
	g.Expect(gatherOperator(t.Context(), refusing(nil), &none)).To(Succeed())
	g.Expect(none).To(Equal(Facts{Namespace: "ml"}))

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "tideline.tideline.io"}}
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-time.Hour)))
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "tideline-controller-manager"},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)}, Status: appsv1.DeploymentStatus{ReadyReplicas: 1},
	}
	both := Facts{Namespace: "ml"}
	g.Expect(gatherOperator(t.Context(), refusing([]client.Object{lease, deployment}), &both)).To(Succeed())
	g.Expect(both.Operator).To(Equal(&Replicas{Wanted: 2, Ready: 1}))
	g.Expect(*both.LeaseSilence).To(BeNumerically("~", time.Hour, time.Minute))
}

// A Lease that an operator outside the cluster left says nothing about the installed one. One that it renews does.
func TestLeaseOfAnotherOperator(t *testing.T) {
	renewed := func(namespace, holder string, ago time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rbac.Lease},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-ago))),
			},
		}
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "tideline-controller-manager"},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: 1},
	}
	for name, c := range map[string]struct {
		leases        []client.Object
		level         Level
		leader, other string
	}{
		"without leader election, beside an old one": {leases: []client.Object{renewed("default", "", 72*time.Hour)}, level: OK},
		"beside an old one": {
			leases: []client.Object{renewed("ml", "pod_1", time.Second), renewed("default", "host_1", time.Hour)},
			level:  OK, leader: "pod_1",
		},
		"beside another": {
			leases: []client.Object{renewed("ml", "pod_1", time.Second), renewed("default", "host_1", time.Second)},
			level:  Wrong, leader: "pod_1", other: "host_1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), Facts{Namespace: "ml"}
			g.Expect(gatherOperator(t.Context(), refusing(append(c.leases, deployment.DeepCopy())), &f)).To(Succeed())
			g.Expect(operator(f).Level).To(Equal(c.level), operator(f).What)
			g.Expect(f.Leader).To(Equal(c.leader))
			g.Expect(f.OtherLeader).To(Equal(c.other))
		})
	}
}

// OLM and component cert-manager grant no rights on certificates, because they keep them.
func TestRightsOnCertificatesAreNotMissedWhereOthersKeepThem(t *testing.T) {
	ours := Facts{Namespace: rbac.Namespace}
	others := Facts{Namespace: rbac.Namespace, OthersCertificate: true}
	g := NewWithT(t)
	g.Expect(gatherDenied(t.Context(), refusing(nil), &ours)).To(Succeed())
	g.Expect(gatherDenied(t.Context(), refusing(nil), &others)).To(Succeed())
	g.Expect(ours.Denied).To(ContainElements(ContainSubstring("secrets"), ContainSubstring("webhookconfigurations")))
	g.Expect(others.Denied).NotTo(ContainElement(ContainSubstring("webhookconfigurations")))
	g.Expect(others.Denied).To(ContainElement("get secrets"), "of MergeJobs")
	g.Expect(others.Denied).To(HaveLen(len(ours.Denied)-4), "two rules on Secrets and two on configurations")
}

// OLM and kustomizations put the operator into a namespace of their own, where it has another ServiceAccount.
func TestRightsAreAskedForWhereTheOperatorIs(t *testing.T) {
	elsewhere := configurations("tideline-mutating-webhook", "tideline-validating-webhook", []byte("CA"))
	for _, o := range elsewhere {
		if c, ok := o.(*admissionregistrationv1.MutatingWebhookConfiguration); ok {
			c.Webhooks[0].ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "ml", Name: "tideline-webhook"}
		}
	}
	for want, objects := range map[string][]client.Object{"ml": elsewhere, "tideline-system": nil} {
		t.Run(want, func(t *testing.T) {
			users, namespaces := map[string]bool{}, map[string]bool{}
			review := func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				spec := o.(*authorizationv1.SubjectAccessReview).Spec
				users[spec.User], namespaces[spec.ResourceAttributes.Namespace] = true, true
				return nil
			}
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).
				WithInterceptorFuncs(interceptor.Funcs{Create: review}).Build()
			g, f := NewWithT(t), Facts{Namespace: rbac.Namespace}
			g.Expect(gatherOwnWebhooks(t.Context(), c, &f)).To(Succeed())
			g.Expect(gatherDenied(t.Context(), c, &f)).To(Succeed())
			g.Expect(users).To(Equal(map[string]bool{"system:serviceaccount:" + want + ":tideline-controller-manager": true}))
			g.Expect(namespaces).To(Equal(map[string]bool{"": true, want: true}), "of the ClusterRole and of the Role")
		})
	}
}

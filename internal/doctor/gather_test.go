package doctor

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// configurations are webhook configurations as they are installed under two names, and one of somebody else.
func configurations(mutating, validating string, ca []byte) []client.Object {
	config := admissionregistrationv1.WebhookClientConfig{CABundle: ca}
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: mutating},
			Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "default" + ownWebhook, ClientConfig: config}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: validating},
			Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "validate" + ownWebhook, ClientConfig: config}},
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
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).
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

// OLM and component cert-manager grant no rights on certificates, because they keep them.
func TestRightsOnCertificatesAreNotMissedWhereOthersKeepThem(t *testing.T) {
	ours, others := Facts{}, Facts{OthersCertificate: true}
	g := NewWithT(t)
	g.Expect(gatherDenied(t.Context(), refusing(nil), &ours)).To(Succeed())
	g.Expect(gatherDenied(t.Context(), refusing(nil), &others)).To(Succeed())
	g.Expect(ours.Denied).To(ContainElements(ContainSubstring("secrets"), ContainSubstring("webhookconfigurations")))
	g.Expect(others.Denied).NotTo(ContainElement(Or(ContainSubstring("secrets"), ContainSubstring("webhookconfigurations"))))
	g.Expect(others.Denied).To(HaveLen(len(ours.Denied)-4), "two rules on Secrets and two on configurations")
}

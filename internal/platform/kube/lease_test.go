package kube

import (
	"bytes"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// An operator outside the cluster looks for its Lease where one inside has it.
func TestNamespaceOfTheLease(t *testing.T) {
	g := NewWithT(t)
	installed := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tideline-system"}}).Build()
	g.Expect(LeaseNamespace(t.Context(), installed, "tideline-system")).To(Equal("tideline-system"))
	empty := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	g.Expect(LeaseNamespace(t.Context(), empty, "tideline-system")).To(Equal("default"))

	// OLM and kustomizations install elsewhere.
	webhook := func(name, namespace string) admissionregistrationv1.MutatingWebhook {
		return admissionregistrationv1.MutatingWebhook{Name: name, ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "webhook"},
		}}
	}
	elsewhere := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tideline-system"}},
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "a-policy"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{
				{Name: "url.tideline.io"}, webhook("policies.example.com", "policies"),
			},
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "default.elastictrainingjobs.tideline.io-x7k2p"},
			Webhooks:   []admissionregistrationv1.MutatingWebhook{webhook("default.elastictrainingjobs.tideline.io", "ml-operators")},
		}).Build()
	g.Expect(LeaseNamespace(t.Context(), elsewhere, "tideline-system")).To(Equal("ml-operators"))
}

func TestSecondOperatorSaysWhoLeads(t *testing.T) {
	lease := client.ObjectKey{Namespace: "default", Name: "tideline.tideline.io"}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("host-1_abc")},
	}).Build()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var said bytes.Buffer
		SayWhoLeads(t.Context(), c, lease, make(chan struct{}), zap.New(zap.WriteTo(&said)))
		g.Expect(said.String()).To(And(ContainSubstring("Another operator leads."), ContainSubstring("host-1_abc")))
		said.Reset()
		elected := make(chan struct{})
		close(elected)
		SayWhoLeads(t.Context(), c, lease, elected, zap.New(zap.WriteTo(&said)))
		g.Expect(said.String()).To(BeEmpty())
	})
}

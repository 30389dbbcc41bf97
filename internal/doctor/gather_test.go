package doctor

import (
	"context"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/internal/webhook"
)

// With component cert-manager the operator has no rights in its own namespace, which is as it should be.
func TestRightsForTheOwnCertificateAreAskedForWhereItIsMade(t *testing.T) {
	for annotation, want := range map[string][]string{
		"other":                          {"create secrets", "get/list/update/watch secrets"},
		"cert-manager.io/inject-ca-from": nil,
	} {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		configuration.Name = webhook.ValidatingConfiguration
		configuration.Annotations = map[string]string{annotation: "tideline-system/tideline-webhook"}
		c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(configuration).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				if review, ok := o.(*authorizationv1.SubjectAccessReview); ok {
					review.Status.Allowed = review.Spec.ResourceAttributes.Namespace == ""
				}
				return nil
			},
		}).Build()
		var f Facts
		for _, gather := range []func(context.Context, client.Client, *Facts) error{gatherOwnWebhooks, gatherDenied} {
			if err := gather(t.Context(), c, &f); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(f.Denied, want) {
			t.Errorf("with annotation %s, what is missing is %q, want %q", annotation, f.Denied, want)
		}
	}
}

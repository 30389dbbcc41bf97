package olm

import (
	"cmp"
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/testutil"
)

// packageName is the name of the bundle's package in catalogs.
const packageName = "tideline"

// object is an object of OLM in the operator's namespace.
func object(version, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("operators.coreos.com/" + version)
	o.SetKind(kind)
	o.SetNamespace(testutil.OperatorNamespace)
	o.SetName(name)
	return o
}

func subscription() *unstructured.Unstructured {
	return object("v1alpha1", "Subscription", packageName)
}

// subscribe asks OLM for the package, as docs/olm.md does, in a namespace that holds pods to the restricted standard.
func subscribe(ctx context.Context, c client.Client) {
	GinkgoHelper()
	namespace := &corev1.Namespace{}
	namespace.Name = testutil.OperatorNamespace
	namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	group := object("v1", "OperatorGroup", "tideline") // of no namespace in particular, which is all of them
	subscribed := subscription()
	subscribed.Object["spec"] = map[string]any{
		"name": packageName, "source": olmCatalog, "sourceNamespace": olmNamespace,
	}
	for _, o := range []client.Object{namespace, group, subscribed} {
		Expect(c.Create(ctx, o)).To(Succeed(), "%s %s is created", o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
	}
}

// text reads a field of an object, which is empty where there is none.
func text(ctx context.Context, c client.Client, o *unstructured.Unstructured, path ...string) (string, error) {
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	found, _, err := unstructured.NestedString(o.Object, path...)
	return found, err
}

// granted lists the bindings by which the operator's ServiceAccount has rights.
func granted(ctx context.Context, c client.Client) ([]string, error) {
	var names []string
	collect := func(binding client.Object, subjects []rbacv1.Subject) {
		if slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			// A RoleBinding may leave out the namespace of a ServiceAccount in its own.
			return s.Kind == rbacv1.ServiceAccountKind && s.Name == testutil.OperatorServiceAccount &&
				cmp.Or(s.Namespace, binding.GetNamespace()) == testutil.OperatorNamespace
		}) {
			names = append(names, strings.TrimPrefix(binding.GetNamespace()+"/"+binding.GetName(), "/"))
		}
	}
	bindings, clusterBindings := &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleBindingList{}
	if err := c.List(ctx, bindings); err != nil {
		return nil, err
	}
	for _, b := range bindings.Items {
		collect(&b, b.Subjects)
	}
	if err := c.List(ctx, clusterBindings); err != nil {
		return nil, err
	}
	for _, b := range clusterBindings.Items {
		collect(&b, b.Subjects)
	}
	return names, nil
}

// rightsUnder are matchers of the bindings by which the operator has rights while a ClusterServiceVersion is installed.
func rightsUnder(csv string) []any {
	const service = "tideline-controller-manager-service"
	return []any{
		HavePrefix(csv + "-"),                                    // rights in all namespaces
		HavePrefix(csv + "-" + packageName + "-"),                // rights in its own namespace, which OLM lifts
		HavePrefix(testutil.OperatorNamespace + "/" + csv + "-"), // the same where they were asked for
		testutil.OperatorNamespace + "/" + csv,                   // its OperatorCondition
		testutil.OperatorNamespace + "/" + service + "-cert",     // the Secret with its certificate
		service + "-system:auth-delegator",
		"kube-system/" + service + "-auth-reader",
	}
}

// configurations are the webhook configurations that OLM made for a ClusterServiceVersion.
func configurations(ctx context.Context, c client.Client, csv string) ([]client.Object, error) {
	ours := client.MatchingLabels{"olm.owner": csv}
	mutating := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	validating := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	if err := c.List(ctx, mutating, ours); err != nil {
		return nil, err
	}
	if err := c.List(ctx, validating, ours); err != nil {
		return nil, err
	}
	var all []client.Object
	for i := range mutating.Items {
		all = append(all, &mutating.Items[i])
	}
	for i := range validating.Items {
		all = append(all, &validating.Items[i])
	}
	return all, nil
}

// called names the configurations.
func called(ctx context.Context, c client.Client, csv string) ([]string, error) {
	all, err := configurations(ctx, c, csv)
	var names []string
	for _, o := range all {
		names = append(names, o.GetName())
	}
	return names, err
}

// gone holds when an object does not exist.
func gone(ctx context.Context, c client.Client, o client.Object) (bool, error) {
	err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

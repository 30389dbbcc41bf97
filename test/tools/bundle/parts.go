package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	kindCRD = "CustomResourceDefinition"
	// roles and bindings of the cluster have the same fields as those of a namespace.
	kindClusterRole, kindRole               = "ClusterRole", "Role"
	kindClusterRoleBinding, kindRoleBinding = "ClusterRoleBinding", "RoleBinding"
)

// carriedKinds are what a bundle may carry beside the ClusterServiceVersion, of all that OLM knows
// (pkg/lib/bundle/supported_resources.go of operator-registry): what config/ has or may have.
var carriedKinds = []string{
	kindCRD, kindClusterRole, kindRole, kindClusterRoleBinding, kindRoleBinding, "ConfigMap", "NetworkPolicy", "PodDisruptionBudget",
	"PriorityClass", "PrometheusRule", "Service", "ServiceMonitor",
}

// parts are rendered manifests by what a bundle does with them.
type parts struct {
	base        v1alpha1.ClusterServiceVersion
	deployments []appsv1.Deployment
	crds        []apiextensionsv1.CustomResourceDefinition
	samples     []*unstructured.Unstructured
	services    map[string]corev1.Service
	// mutating ones have all fields of validating ones.
	mutating, validating []admissionregistrationv1.MutatingWebhook
	// The rights of the operator, in all namespaces and in its own.
	clusterRules, ownRules []rbacv1.PolicyRule
	// carried are the objects that stand in the bundle as they are.
	carried []*unstructured.Unstructured
}

// sortOut tells apart what becomes part of the ClusterServiceVersion, what is carried beside it, and what OLM makes itself: the
// namespace, the ServiceAccount with its bindings, the webhooks' Service.
func sortOut(objects []*unstructured.Unstructured) (*parts, error) {
	p := &parts{services: map[string]corev1.Service{}}
	var rights, others []*unstructured.Unstructured
	for _, o := range objects {
		var err error
		switch o.GetKind() {
		case v1alpha1.ClusterServiceVersionKind:
			err = convert(o, &p.base)
		case "Deployment":
			err = decodeInto(o, &p.deployments)
		case kindCRD:
			err = decodeInto(o, &p.crds)
			others = append(others, o)
		case "MutatingWebhookConfiguration":
			err = addWebhooks(o, &p.mutating)
		case "ValidatingWebhookConfiguration":
			err = addWebhooks(o, &p.validating)
		case "Service":
			var service corev1.Service
			err = convert(o, &service)
			p.services[service.Name] = service
			others = append(others, o)
		case kindClusterRole, kindRole, kindClusterRoleBinding, kindRoleBinding:
			rights = append(rights, o)
		case "Namespace", "ServiceAccount":
		default:
			others = append(others, o)
		}
		if err != nil {
			return nil, err
		}
	}
	if p.base.Name == "" || len(p.deployments) != 1 || len(p.crds) == 0 {
		return nil, fmt.Errorf("the manifests have %d Deployments and %d CustomResourceDefinitions, want 1 and at least 1, and a "+
			"ClusterServiceVersion, which is %q", len(p.deployments), len(p.crds), p.base.Name)
	}
	if err := p.sortRights(rights); err != nil {
		return nil, err
	}
	return p, p.sortOthers(others)
}

// sortOthers tells samples from what is carried.
func (p *parts) sortOthers(objects []*unstructured.Unstructured) error {
	ours := func(o *unstructured.Unstructured) bool {
		return slices.ContainsFunc(p.crds, func(crd apiextensionsv1.CustomResourceDefinition) bool {
			return crd.Spec.Group == o.GroupVersionKind().Group && crd.Spec.Names.Kind == o.GetKind()
		})
	}
	called := map[string]bool{}
	for _, w := range slices.Concat(p.mutating, p.validating) {
		if w.ClientConfig.Service != nil {
			called[w.ClientConfig.Service.Name] = true
		}
	}
	for _, o := range objects {
		switch {
		case ours(o):
			p.samples = append(p.samples, o)
		case o.GetKind() == "Service" && called[o.GetName()]:
		case slices.Contains(carriedKinds, o.GetKind()):
			p.carried = append(p.carried, o)
		default:
			return fmt.Errorf("a bundle cannot carry %s %s: leave it out in config/manifests", o.GetKind(), o.GetName())
		}
	}
	return nil
}

// sortRights collects what the operator may do. Roles that are not bound to it, which are for people, are carried.
func (p *parts) sortRights(objects []*unstructured.Unstructured) error {
	roles := map[string]rbacv1.ClusterRole{}
	bound := map[string]bool{}
	var bindings []rbacv1.ClusterRoleBinding
	for _, o := range objects {
		var err error
		if kind := o.GetKind(); kind == kindClusterRole || kind == kindRole {
			var role rbacv1.ClusterRole
			err = convert(o, &role)
			roles[roleKey(kind, role.Namespace, role.Name)] = role
		} else {
			err = decodeInto(o, &bindings)
		}
		if err != nil {
			return err
		}
	}
	for _, binding := range bindings {
		if err := p.checkBinding(&binding); err != nil {
			return err
		}
		key := roleKey(binding.RoleRef.Kind, binding.Namespace, binding.RoleRef.Name)
		role, ok := roles[key]
		if !ok {
			return fmt.Errorf("%s %s binds %s, which the manifests do not have", binding.Kind, binding.Name, key)
		}
		bound[key] = true
		rules := withoutCertificates(role.Rules, binding.Kind == kindRoleBinding)
		if binding.Kind == kindRoleBinding {
			p.ownRules = append(p.ownRules, rules...)
		} else {
			p.clusterRules = append(p.clusterRules, rules...)
		}
	}
	for _, o := range objects {
		kind := o.GetKind()
		if (kind == kindClusterRole || kind == kindRole) && !bound[roleKey(kind, o.GetNamespace(), o.GetName())] {
			p.carried = append(p.carried, o)
		}
	}
	return nil
}

// roleKey tells roles apart: a Role is one of its namespace, a ClusterRole is the same wherever it is bound.
func roleKey(kind, namespace, name string) string {
	if kind == kindClusterRole {
		namespace = ""
	}
	return strings.Trim(kind+"/"+namespace, "/") + "/" + name
}

// checkBinding refuses what OLM cannot bind: it gives rights to the operator's account alone, in its own namespace or in all.
func (p *parts) checkBinding(binding *rbacv1.ClusterRoleBinding) error {
	manager := p.deployments[0]
	operator := rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: manager.Namespace, Name: manager.Spec.Template.Spec.ServiceAccountName,
	}
	if !slices.Equal(binding.Subjects, []rbacv1.Subject{operator}) {
		return fmt.Errorf("%s %s binds others than the operator, %s %s/%s: leave it out in config/manifests",
			binding.Kind, binding.Name, operator.Kind, operator.Namespace, operator.Name)
	}
	if binding.Kind == kindRoleBinding && binding.Namespace != manager.Namespace {
		return fmt.Errorf("%s %s gives rights in namespace %s, OLM gives them in the operator's own, %s, or in all: "+
			"leave it out in config/manifests", binding.Kind, binding.Name, binding.Namespace, manager.Namespace)
	}
	return nil
}

// withoutCertificates drops the rights by which the operator keeps the certificate of its webhooks, which is OLM's to keep: on
// webhook configurations, and on Secrets of its own namespace.
func withoutCertificates(rules []rbacv1.PolicyRule, own bool) []rbacv1.PolicyRule {
	return slices.DeleteFunc(slices.Clone(rules), func(rule rbacv1.PolicyRule) bool {
		configurations := slices.ContainsFunc(rule.Resources, func(resource string) bool {
			return strings.HasSuffix(resource, "webhookconfigurations")
		})
		return configurations || own && slices.Contains(rule.Resources, "secrets")
	})
}

// addWebhooks adds the webhooks of a configuration of either kind.
func addWebhooks(o *unstructured.Unstructured, into *[]admissionregistrationv1.MutatingWebhook) error {
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	err := convert(o, &configuration)
	*into = append(*into, configuration.Webhooks...)
	return err
}

func decodeInto[T any](o *unstructured.Unstructured, into *[]T) error {
	var decoded T
	err := convert(o, &decoded)
	*into = append(*into, decoded)
	return err
}

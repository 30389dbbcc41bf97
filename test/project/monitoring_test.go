package project

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/resource"
)

// From the operator's port to the label by which rules know it: each link is by a name, and a name that is wrong shows nothing.
func TestPrometheusFindsTheOperator(t *testing.T) {
	all := installation(t, "monitoring")
	pod := deployment(t, named(t, all, "Deployment", manager)).Spec.Template
	container := pod.Spec.Containers[0]
	i := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == "metrics" })
	if i < 0 || !slices.Contains(container.Args, "--metrics-bind-address=:"+strconv.Itoa(int(container.Ports[i].ContainerPort))) {
		t.Errorf("the operator runs with %v and has ports %v", container.Args, container.Ports)
	}
	var service corev1.Service
	decode(t, named(t, all, "Service", "tideline-metrics"), &service)
	for key, value := range service.Spec.Selector {
		if pod.Labels[key] != value {
			t.Errorf("the Service selects %s=%s, which the operator's pod does not have", key, value)
		}
	}
	if port := service.Spec.Ports[0]; port.TargetPort.StrVal != container.Ports[i].Name {
		t.Errorf("the Service leads to port %v", &port.TargetPort)
	}
	monitor := named(t, all, "ServiceMonitor", "tideline-metrics")
	labels, err := monitor.GetFieldValue("spec.selector.matchLabels")
	if err != nil {
		t.Fatal(err)
	}
	selector, _ := labels.(map[string]any)
	for key, value := range selector {
		if service.Labels[key] != value {
			t.Errorf("the ServiceMonitor selects %s=%s, which the Service does not have", key, value)
		}
	}
	if port, err := monitor.GetFieldValue("spec.endpoints.0.port"); err != nil || port != service.Spec.Ports[0].Name {
		t.Errorf("the ServiceMonitor reads port %v of %v (%v)", port, service.Spec.Ports, err)
	}
	scrapeToken(t, all, monitor)
	for _, rule := range alerts(t) {
		if strings.Count(rule.Expr, `job="`) != strings.Count(rule.Expr, `job="`+service.Name+`"`) {
			t.Errorf("%s is about other jobs than that of Service %s: %s", rule.Alert, service.Name, rule.Expr)
		}
	}
}

// scrapeToken holds what Prometheus shows to an operator that it does not verify to a token that can read the metrics and nothing
// else.
func scrapeToken(t *testing.T, all []*resource.Resource, monitor *resource.Resource) {
	t.Helper()
	name, err := monitor.GetFieldValue("spec.endpoints.0.authorization.credentials.name")
	if err != nil {
		t.Fatal(err)
	}
	var token corev1.Secret
	decode(t, named(t, all, "Secret", name.(string)), &token)
	account := token.Annotations[corev1.ServiceAccountNameKey]
	named(t, all, "ServiceAccount", account)
	if token.Type != corev1.SecretTypeServiceAccountToken {
		t.Errorf("Kubernetes writes no token into a Secret of type %s", token.Type)
	}
	bound := 0
	for _, r := range all {
		if !strings.HasSuffix(r.GetKind(), "RoleBinding") {
			continue
		}
		var binding rbacv1.ClusterRoleBinding // with the fields of a RoleBinding
		decode(t, r, &binding)
		if !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Name == account }) {
			continue
		}
		bound++
		var role rbacv1.ClusterRole
		decode(t, named(t, all, binding.RoleRef.Kind, binding.RoleRef.Name), &role)
		want := []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}}
		if !reflect.DeepEqual(role.Rules, want) {
			t.Errorf("who has the token may %+v", role.Rules)
		}
	}
	if bound != 1 {
		t.Errorf("%d roles are bound to %s", bound, account)
	}
}

// The page on metrics shows how monitors and rules get the label by which kube-prometheus-stack selects them.
func TestMetricsPageShowsWhatBuilds(t *testing.T) {
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(readPage(t, "docs/metrics.md"))
	if shown == nil {
		t.Fatal("the page shows no kustomization")
	}
	all := buildOwn(t, shown[1])
	for kind, name := range map[string]string{"ServiceMonitor": "tideline-metrics", "PrometheusRule": "tideline-alerts"} {
		if labels := named(t, all, kind, name).GetLabels(); labels["release"] != "kube-prometheus-stack" {
			t.Errorf("%s %s has labels %v", kind, name, labels)
		}
	}
}

// The component gives the operator the right to ask who reads its metrics, and nothing else.
func TestMonitoringGrantsLittle(t *testing.T) {
	all := installation(t, "monitoring")
	var role rbacv1.ClusterRole
	decode(t, named(t, all, "ClusterRole", "tideline-metrics"), &role)
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].Resources, []string{"tokenreviews"}) ||
		!slices.Equal(role.Rules[0].Verbs, []string{"create"}) {
		t.Errorf("the operator may %+v", role.Rules)
	}
	var binding rbacv1.ClusterRoleBinding
	decode(t, named(t, all, "ClusterRoleBinding", "tideline-metrics"), &binding)
	named(t, all, binding.Subjects[0].Kind, binding.Subjects[0].Name)
	// What readers may do is asked by the right that the operator has for the webhooks.
	decode(t, named(t, all, "ClusterRole", "tideline-manager"), &role)
	if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "subjectaccessreviews") && slices.Contains(r.Verbs, "create")
	}) {
		t.Error("the operator may not ask who may read metrics")
	}
}

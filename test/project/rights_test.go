package project

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/resource"
)

// The operator may read users' Secrets by their names, which MergeJobs give, and never list them; it may create them only if
// somebody adds the component. In its own namespace it reads and changes the one with its certificate, by name.
func TestSecretsAreCreatedOnlyWithTheComponent(t *testing.T) {
	for _, r := range installation(t) {
		if rights := rightsOn(t, r, "secrets"); len(rights) > 0 && !slices.Equal(rights, []string{"get"}) {
			t.Errorf("%s %s lets the operator %v secrets", r.GetKind(), r.GetName(), rights)
		}
		if r.GetKind() == "Role" {
			var role rbacv1.Role
			decode(t, r, &role)
			for _, rule := range role.Rules {
				only := slices.Equal(rule.Verbs, []string{"create"}) || len(rule.ResourceNames) > 0
				if slices.Contains(rule.Resources, "secrets") && (!only || role.Namespace != "tideline-system") {
					t.Errorf("Role %s/%s lets the operator %v secrets", role.Namespace, role.Name, rule.Verbs)
				}
			}
		}
	}
	granted := false
	for _, r := range installation(t, "ssh-keys") {
		if rights := rightsOn(t, r, "secrets"); len(rights) > 0 && !slices.Equal(rights, []string{"get"}) {
			granted = true
			if !slices.Equal(rights, []string{"create"}) {
				t.Errorf("%s %s lets the operator %v secrets", r.GetKind(), r.GetName(), rights)
			}
		}
	}
	if !granted {
		t.Error("the component grants nothing")
	}
}

// So with NetworkPolicies: who may create one may shut pods off, and who may change them may let others in.
func TestNetworkPoliciesAreCreatedOnlyWithTheComponent(t *testing.T) {
	expectRights(t, "job-network-policy", "networkpolicies", nil, []string{"create"})
}

// Whoever may write routes decides what of the cluster the world reaches.
func TestRoutesAreWrittenOnlyWithTheComponent(t *testing.T) {
	for _, what := range []string{"ingresses", "httproutes"} {
		expectRights(t, "job-pages", what, nil, []string{"create", "delete", "get"})
	}
}

// Logs hold what people print.
func TestLogsAreReadOnlyWithTheComponent(t *testing.T) {
	expectRights(t, "training-progress", "pods/log", nil, []string{"get"})
}

// Whoever changes a node decides what runs on it.
func TestNodesAreTaintedOnlyWithTheComponent(t *testing.T) {
	expectRights(t, "node-taints", "nodes", []string{"list", "watch"}, []string{"list", "patch", "watch"})
}

// Whoever changes a Notebook decides which image runs as its user.
func TestNotebooksAreStoppedOnlyWithTheComponent(t *testing.T) {
	expectRights(t, "notebook-culling", "statefulsets", nil, []string{"get"})
	expectRights(t, "notebook-culling", "notebooks", nil, []string{"get", "patch"})
	var policy admissionregistrationv1.ValidatingAdmissionPolicyBinding
	all := installation(t, "notebook-culling")
	decode(t, named(t, all, "ValidatingAdmissionPolicyBinding", "tideline-operator-notebooks"), &policy)
	if !slices.Equal(policy.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) {
		t.Errorf("the policy does %v", policy.Spec.ValidationActions)
	}
}

// expectRights holds the operator to verbs on a resource, in alphabetical order: without a component, and with it.
func expectRights(t *testing.T, component, what string, without, with []string) {
	t.Helper()
	for name, want := range map[string][]string{"": without, component: with} {
		var components, rights []string
		if name != "" {
			components = append(components, name)
		}
		for _, r := range installation(t, components...) {
			rights = append(rights, rightsOn(t, r, what)...)
		}
		slices.Sort(rights)
		if rights = slices.Compact(rights); !slices.Equal(rights, want) {
			t.Errorf("with component %q the operator may %v %s, want %v", name, rights, what, want)
		}
	}
}

// rightsOn are the verbs that a role of the operator's has on a resource in all namespaces.
func rightsOn(t *testing.T, r *resource.Resource, what string) []string {
	t.Helper()
	if r.GetKind() != "ClusterRole" {
		return nil
	}
	var role rbacv1.ClusterRole
	decode(t, r, &role)
	var verbs []string
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, what) || slices.Contains(rule.Resources, "*") {
			verbs = append(verbs, rule.Verbs...)
		}
	}
	return verbs
}

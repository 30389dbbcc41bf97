package project

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	kustomize "sigs.k8s.io/kustomize/api/resource"
)

// The namespace enforces the strictest level of Pod Security. If the operator's pods asked for more, they would be refused, and
// only the events of a ReplicaSet would say so.
func TestOperatorMeetsThePodSecurityThatItsNamespaceEnforces(t *testing.T) {
	for name, all := range installations(t) {
		var namespace corev1.Namespace
		for _, r := range all {
			if r.GetKind() == "Namespace" {
				decode(t, r, &namespace)
			}
		}
		for _, r := range all {
			if r.GetKind() != "Deployment" {
				continue
			}
			level, problems := api.PolicyToEvaluate(namespace.Labels, api.Policy{})
			if len(problems) > 0 || level.Enforce.Level != api.LevelRestricted {
				t.Errorf("%s: namespace %s enforces %s %v", name, namespace.Name, level.Enforce, problems)
			}
			for _, refused := range refusals(t, deployment(t, r), level.Enforce) {
				t.Errorf("%s: %s", name, refused)
			}
		}
	}
}

func TestPodsThatAskForMoreAreRefused(t *testing.T) {
	for name, ask := range map[string]func(*corev1.PodSpec){
		"root":             func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = ptr.To(false) },
		"no seccomp":       func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil },
		"more privileges":  func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
		"capabilities":     func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil },
		"the node's ports": func(s *corev1.PodSpec) { s.Containers[0].Ports[0].HostPort = 8081 },
	} {
		for _, r := range build(t, "config/manager") {
			if r.GetKind() != "Deployment" {
				continue
			}
			manager := deployment(t, r)
			ask(&manager.Spec.Template.Spec)
			if len(refusals(t, manager, api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()})) == 0 {
				t.Errorf("a pod that asks for %s would be admitted", name)
			}
		}
	}
}

// What the level does not ask for, and we hold the operator to all the same.
func TestOperatorAsksForLittle(t *testing.T) {
	tokens := map[string]bool{}
	for _, r := range installation(t) {
		switch r.GetKind() {
		case "ServiceAccount":
			var account corev1.ServiceAccount
			decode(t, r, &account)
			tokens[account.Name] = ptr.Deref(account.AutomountServiceAccountToken, true)
		case "Deployment":
			pod := deployment(t, r).Spec.Template.Spec
			for _, c := range pod.Containers {
				if !ptr.Deref(c.SecurityContext.ReadOnlyRootFilesystem, false) {
					t.Errorf("container %s may write to its file system", c.Name)
				}
				if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
					t.Errorf("container %s has resources %+v", c.Name, c.Resources)
				}
				if c.LivenessProbe == nil || c.ReadinessProbe == nil {
					t.Errorf("container %s has no probes", c.Name)
				}
			}
			if !ptr.Deref(pod.AutomountServiceAccountToken, false) {
				t.Error("the operator has no token")
			}
		}
	}
	for name, token := range tokens {
		if token {
			t.Errorf("every pod of ServiceAccount %s has a token", name)
		}
	}
}

// Go collects garbage in time only where it knows the limit, with which a tenth is left for what is not Go's heap.
func TestOperatorKnowsItsLimitOfMemory(t *testing.T) {
	for name, all := range installations(t) {
		c := deployment(t, named(t, all, "Deployment", manager)).Spec.Template.Spec.Containers[0]
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
		if i < 0 {
			t.Errorf("%s: Go is told no limit of memory", name)
			continue
		}
		goal, err := resource.ParseQuantity(strings.TrimSuffix(c.Env[i].Value, "B"))
		limit := c.Resources.Limits.Memory()
		if share := float64(goal.Value()) / float64(limit.Value()); err != nil || share < 0.88 || share > 0.92 {
			t.Errorf("%s: GOMEMLIMIT is %s (%v), which is %.2f of the limit, %s: want 0.9", name, c.Env[i].Value, err, share, limit)
		}
	}
}

func deployment(t *testing.T, r *kustomize.Resource) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	decode(t, r, &d)
	return &d
}

// refusals are what the admission of pods says against those of a Deployment.
func refusals(t *testing.T, d *appsv1.Deployment, level api.LevelVersion) []string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, result := range evaluator.EvaluatePod(level, &d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec) {
		if !result.Allowed {
			all = append(all, d.Name+": "+result.ForbiddenReason+": "+result.ForbiddenDetail)
		}
	}
	return all
}

package project

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/resource"
)

// Every port that is served is opened, and no other: a policy that forgets the webhooks' port lets nobody create a job. The
// probes are the kubelet's, which no policy keeps out of its own node.
func TestNetworkPoliciesOpenWhatIsServed(t *testing.T) {
	for name, all := range installations(t) {
		var manager appsv1.Deployment
		var policies []networkingv1.NetworkPolicy
		for _, r := range all {
			switch r.GetKind() {
			case "Deployment":
				decode(t, r, &manager)
			case "NetworkPolicy":
				var policy networkingv1.NetworkPolicy
				decode(t, r, &policy)
				policies = append(policies, policy)
			}
		}
		served := map[int32]bool{}
		for _, port := range manager.Spec.Template.Spec.Containers[0].Ports {
			if port.Name != "health" {
				served[port.ContainerPort] = true
			}
		}
		opened := openedPorts(t, policies, &manager.Spec.Template)
		if !maps.Equal(served, opened) {
			t.Errorf("%s: the operator serves %v, the policies open %v", name, served, opened)
		}
	}
}

// openedPorts are the ports of pods that policies open, by number: not every network knows the names.
func openedPorts(t *testing.T, policies []networkingv1.NetworkPolicy, pod *corev1.PodTemplateSpec) map[int32]bool {
	t.Helper()
	opened, isolated := map[int32]bool{}, map[networkingv1.PolicyType]bool{}
	for _, policy := range policies {
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			t.Errorf("policy %s does not select the operator's pods (%v)", policy.Name, err)
		}
		for _, kind := range policy.Spec.PolicyTypes {
			isolated[kind] = true
		}
		for _, rule := range policy.Spec.Ingress {
			if len(rule.Ports) == 0 {
				t.Errorf("policy %s opens every port", policy.Name)
			}
			for _, port := range rule.Ports {
				opened[port.Port.IntVal] = true
			}
		}
	}
	if !isolated[networkingv1.PolicyTypeIngress] || !isolated[networkingv1.PolicyTypeEgress] {
		t.Errorf("only %v is limited", isolated)
	}
	return opened
}

// The operator calls the API server, and asks for its name.
func TestNetworkPolicyLetsTheOperatorOut(t *testing.T) {
	out := portsOut(t, build(t, "config/network-policy"))
	if want := []string{"TCP 443", "TCP 6443", "UDP 53", "TCP 53"}; !slices.Equal(out, want) {
		t.Errorf("egress to %v, want %v", out, want)
	}
}

// Whoever adds component mail lets mail be submitted, and nothing else.
func TestComponentLetsMailOut(t *testing.T) {
	before, after := portsOut(t, installation(t)), portsOut(t, installation(t, "mail"))
	slices.Sort(before)
	want := append(slices.Clone(before), "TCP 465", "TCP 587")
	slices.Sort(want)
	slices.Sort(after)
	if !slices.Equal(after, want) {
		t.Errorf("egress to %v, want %v", after, want)
	}
}

// Where the server's address is known, mail goes there alone.
func TestPageNamesTheServerForMail(t *testing.T) {
	shown := regexp.MustCompile("(?s)```yaml\n(apiVersion: kustomize.*?)```").FindStringSubmatch(readPage(t, "docs/cost.md"))
	if shown == nil {
		t.Fatal("docs/cost.md shows no kustomization")
	}
	var policy networkingv1.NetworkPolicy
	decode(t, named(t, buildOwn(t, shown[1]), "NetworkPolicy", "tideline-mail"), &policy)
	if rules := policy.Spec.Egress; len(rules) != 1 || len(rules[0].To) != 1 || len(rules[0].Ports) != 2 {
		t.Errorf("egress by %v", rules)
	}
}

// The page on security says how to let in the API server alone. Who follows it shuts out all others, and opens no other port.
func TestPageNamesTheCallersOfWebhooks(t *testing.T) {
	shown := regexp.MustCompile("(?s)```yaml\n(apiVersion: kustomize.*?)```").FindStringSubmatch(readPage(t, "docs/security.md"))
	if shown == nil {
		t.Fatal("docs/security.md shows no kustomization")
	}
	var before, after networkingv1.NetworkPolicy
	decode(t, named(t, installation(t), "NetworkPolicy", manager), &before)
	decode(t, named(t, buildOwn(t, shown[1]), "NetworkPolicy", manager), &after)
	if len(after.Spec.Ingress) != 1 || len(after.Spec.Ingress[0].From) != 2 {
		t.Fatalf("ingress by %v", after.Spec.Ingress)
	}
	for _, peer := range after.Spec.Ingress[0].From {
		if peer.IPBlock == nil && (peer.PodSelector == nil || peer.NamespaceSelector == nil) {
			t.Errorf("it lets in all of %v", peer)
		}
	}
	after.Spec.Ingress[0].From = nil
	if !reflect.DeepEqual(before.Spec, after.Spec) {
		t.Errorf("besides, it makes %v of %v", after.Spec, before.Spec)
	}
}

// portsOut are the ports that policies let pods call.
func portsOut(t *testing.T, all []*resource.Resource) []string {
	t.Helper()
	var out []string
	for _, r := range all {
		if r.GetKind() != "NetworkPolicy" {
			continue
		}
		var policy networkingv1.NetworkPolicy
		decode(t, r, &policy)
		for _, rule := range policy.Spec.Egress {
			if len(rule.Ports) == 0 {
				t.Errorf("policy %s lets everything out", policy.Name)
			}
			for _, port := range rule.Ports {
				if port.EndPort != nil || port.Port.Type != intstr.Int {
					t.Errorf("egress to %v", port)
				}
				out = append(out, string(*port.Protocol)+" "+port.Port.String())
			}
		}
	}
	return out
}

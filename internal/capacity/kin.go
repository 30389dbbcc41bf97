package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Kin is who a pod is to other pods, and which of them it wants beside it or not. It is never changed.
type Kin struct {
	Namespace string
	Labels    map[string]string
	// Ports are those of the node that the pod takes.
	Ports []HostPort
	// Apart are required anti-affinities to other pods, Beside required affinities.
	Apart, Beside []Term
	// Spread are the topology spread constraints that forbid.
	Spread []Spread
}

// HostPort is a port of a node. An empty IP stands for all addresses of the node.
type HostPort struct {
	Protocol corev1.Protocol
	IP       string
	Port     int32
}

// Term is a rule about the pods that a selector matches, in the domains that a label of nodes makes.
type Term struct {
	Key string
	// Namespaces are those of the pods; empty for all.
	Namespaces []string
	Selector   labels.Selector
}

// Spread is a rule about how evenly pods of the namespace are spread over the domains that a label of nodes makes.
type Spread struct {
	Term
	MaxSkew, MinDomains int32
}

// ownLabels differ between the pods of one gang, or from attempt to attempt, so the model does not follow selectors that name
// them.
var ownLabels = map[string]bool{
	v1beta1.LabelWorkerIndex: true, v1beta1.LabelAttempt: true, v1beta1.LabelPart: true, v1beta1.LabelRole: true,
	v1beta1.LabelRun:        true,
	"volcano.sh/task-index": true, "apps.kubernetes.io/pod-index": true, "batch.kubernetes.io/job-completion-index": true,
	"statefulset.kubernetes.io/pod-name": true, "training.kubeflow.org/replica-index": true,
}

// KinOf reads whom a pod stands beside. unmodelled names the first of its rules that the model does not cover; the others are
// read all the same, because rules of placed pods hold for those who come later.
func KinOf(namespace string, labelled map[string]string, spec *corev1.PodSpec) (kin *Kin, unmodelled string) {
	k := &Kin{Namespace: namespace, Labels: labelled, Ports: hostPortsOf(spec)}
	note := func(what string) {
		if unmodelled == "" {
			unmodelled = what
		}
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		k.Beside = k.termsOf(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, note)
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		k.Apart = k.termsOf(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, note)
	}
	for i := range spec.TopologySpreadConstraints {
		if c := &spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == corev1.DoNotSchedule {
			k.Spread = append(k.Spread, k.spreadOf(c, note))
		}
	}
	if k.grouping() > 1 {
		note(ManyRules)
	}
	return k, unmodelled
}

// hostPortsOf are the ports of the node that a pod takes. A sidecar is an init container that keeps running, and its ports count;
// other init containers have ended before, but schedulers count theirs as well. On the host's network every port that is named is
// one of the node.
func hostPortsOf(spec *corev1.PodSpec) (ports []HostPort) {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			for _, p := range containers[i].Ports {
				number := p.HostPort
				if number == 0 && spec.HostNetwork {
					number = p.ContainerPort // As the API server does when the pod is created.
				}
				if number == 0 {
					continue
				}
				taken := HostPort{Protocol: p.Protocol, IP: p.HostIP, Port: number}
				if taken.Protocol == "" {
					taken.Protocol = corev1.ProtocolTCP
				}
				if taken.IP == "0.0.0.0" {
					taken.IP = ""
				}
				if !slices.Contains(ports, taken) {
					ports = append(ports, taken)
				}
			}
		}
	}
	return ports
}

func (k *Kin) termsOf(required []corev1.PodAffinityTerm, note func(string)) (terms []Term) {
	for i := range required {
		t := &required[i]
		term := Term{Key: t.TopologyKey, Namespaces: t.Namespaces, Selector: readSelector(t.LabelSelector, note)}
		switch {
		case t.NamespaceSelector == nil:
			// As in the API: without either, the rule is about the pod's own namespace, and an empty selector selects all.
			if len(t.Namespaces) == 0 {
				term.Namespaces = []string{k.Namespace}
			}
		case len(t.NamespaceSelector.MatchLabels)+len(t.NamespaceSelector.MatchExpressions) > 0:
			// Labels of namespaces are not read. All of them rather than too few.
			note(SelectedNamespaces)
			term.Namespaces = nil
		default:
			term.Namespaces = nil
		}
		if len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) > 0 {
			note(LabelKeys)
		}
		terms = append(terms, term)
	}
	return terms
}

func (k *Kin) spreadOf(c *corev1.TopologySpreadConstraint, note func(string)) Spread {
	if len(c.MatchLabelKeys) > 0 {
		note(LabelKeys)
	}
	if c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy != corev1.NodeInclusionPolicyHonor ||
		c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy != corev1.NodeInclusionPolicyIgnore {
		note(SpreadPolicies)
	}
	s := Spread{MaxSkew: c.MaxSkew, MinDomains: 1}
	s.Key, s.Namespaces, s.Selector = c.TopologyKey, []string{k.Namespace}, readSelector(c.LabelSelector, note)
	if c.MinDomains != nil {
		s.MinDomains = *c.MinDomains
	}
	return s
}

// readSelector reads a selector. Without one no pod is meant. A requirement on a label that differs between the pods of a gang is
// left out, so that the selector matches too many pods rather than too few.
func readSelector(s *metav1.LabelSelector, note func(string)) labels.Selector {
	if s == nil {
		return labels.Nothing()
	}
	kept := s.DeepCopy()
	maps.DeleteFunc(kept.MatchLabels, func(key, _ string) bool { return ownLabels[key] })
	kept.MatchExpressions = slices.DeleteFunc(kept.MatchExpressions,
		func(r metav1.LabelSelectorRequirement) bool { return ownLabels[r.Key] })
	if len(kept.MatchLabels)+len(kept.MatchExpressions) < len(s.MatchLabels)+len(s.MatchExpressions) {
		note(OwnLabels)
	}
	selector, err := metav1.LabelSelectorAsSelector(kept)
	if err != nil {
		note(OwnLabels) // The API server refuses such selectors.
		return labels.Everything()
	}
	return selector
}

// meets is true if the term is about the pod.
func (t *Term) meets(k *Kin) bool {
	return k != nil && (len(t.Namespaces) == 0 || slices.Contains(t.Namespaces, k.Namespace)) &&
		t.Selector.Matches(labels.Set(k.Labels))
}

func (t *Term) words() string {
	return fmt.Sprintf("%s %s %s", t.Key, strings.Join(slices.Sorted(slices.Values(t.Namespaces)), ","), t.Selector)
}

// hasRules is true for a pod that does not go beside any other.
func (k *Kin) hasRules() bool {
	return k != nil && len(k.Ports)+len(k.Apart)+len(k.Beside)+len(k.Spread) > 0
}

// grouping counts the rules by which the places of a gang's workers in domains of several nodes depend on each other.
func (k *Kin) grouping() (count int) {
	// Terms of one kind about the same domains bind as one.
	keys := map[string]bool{}
	for i := range k.Apart {
		if t := &k.Apart[i]; t.Key != corev1.LabelHostname && t.meets(k) {
			keys["apart "+t.Key] = true
		}
	}
	for i := range k.Beside {
		if t := &k.Beside[i]; t.meets(k) {
			keys["beside "+t.Key] = true
		}
	}
	count = len(keys)
	for i := range k.Spread {
		if k.Spread[i].meets(k) {
			count++
		}
	}
	return count
}

// isNodeBound is true if all rules are about single nodes, so that one node's room does not depend on another's.
func (k *Kin) isNodeBound() bool {
	return len(k.Beside)+len(k.Spread) == 0 &&
		!slices.ContainsFunc(k.Apart, func(t Term) bool { return t.Key != corev1.LabelHostname })
}

// rulesKey is the same for pods with the same rules that look the same to all others; empty for a pod without rules.
func (k *Kin) rulesKey() string {
	if !k.hasRules() {
		return ""
	}
	words := []string{k.Namespace}
	for _, key := range slices.Sorted(maps.Keys(k.Labels)) {
		if !ownLabels[key] {
			words = append(words, key+"="+k.Labels[key])
		}
	}
	for _, p := range k.Ports {
		words = append(words, fmt.Sprint(p))
	}
	for i := range k.Apart {
		words = append(words, "apart "+k.Apart[i].words())
	}
	for i := range k.Beside {
		words = append(words, "beside "+k.Beside[i].words())
	}
	for i := range k.Spread {
		s := &k.Spread[i]
		words = append(words, fmt.Sprintf("spread %s %d %d", s.Term.words(), s.MaxSkew, s.MinDomains))
	}
	return strings.Join(words, "\n")
}

// looksLike is true if two pods of a gang are the same to the rules of others.
func (k *Kin) looksLike(o *Kin) bool {
	same := func(a, b map[string]string) bool {
		for key, value := range a {
			if have, there := b[key]; !ownLabels[key] && (!there || have != value) {
				return false
			}
		}
		return true
	}
	return k.Namespace == o.Namespace && same(k.Labels, o.Labels) && same(o.Labels, k.Labels)
}

// LookAlike is true if the labels of two pods of a gang are the same but for those that differ between its pods anyway.
func LookAlike(a, b map[string]string) bool { return (&Kin{Labels: a}).looksLike(&Kin{Labels: b}) }

// conflict adds the keys of the domains that a pod keeps another out of. An empty key is the pod's own node.
func (k *Kin) conflict(o *Kin) (keys []string) {
	if o == nil {
		return nil
	}
	for i := range k.Apart {
		if k.Apart[i].meets(o) {
			keys = append(keys, k.Apart[i].Key)
		}
	}
	// Kubernetes holds the anti-affinity of placed pods against those who come later, so it counts in both directions.
	for i := range o.Apart {
		if o.Apart[i].meets(k) {
			keys = append(keys, o.Apart[i].Key)
		}
	}
	for _, p := range k.Ports {
		if slices.ContainsFunc(o.Ports, p.conflicts) {
			keys = append(keys, "")
			break
		}
	}
	return keys
}

// conflicts is true if two pods of one node cannot have both ports.
func (p HostPort) conflicts(o HostPort) bool {
	return p.Protocol == o.Protocol && p.Port == o.Port && (p.IP == o.IP || p.IP == "" || o.IP == "")
}

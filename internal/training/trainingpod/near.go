package trainingpod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// Near is a HyperNode that the whole core is in.
type Near struct {
	Tier int
	// Hosts are the host names of its nodes, in order.
	Hosts []string
}

// StepDomain is a node or HyperNode that a step is within.
type StepDomain struct {
	Name string
	// Hosts are the host names of its nodes, in order.
	Hosts []string
}

// MostHosts is how many host names a pod carries for one HyperNode at most: a larger one is not named. The model gives no steps
// to a larger one either.
const MostHosts = 1000

// closenessOf is what a PodGroup is told.
func closenessOf(t *v1beta1.NetworkTopology) *gang.Closeness {
	if t == nil {
		return nil
	}
	highest, hard := t.HighestTier()
	return &gang.Closeness{Hard: hard, Highest: highest}
}

// stayNear has a surplus worker prefer the nodes near its core: each HyperNode around the core adds to the preference, so the
// nearest nodes come first. In mode Hard it has to be in the widest HyperNode that the job allows.
func (b Blueprint) stayNear(spec *corev1.PodSpec, i int32) {
	near := b.nearEnough()
	if i < b.Attempt.MinReplicas || len(near) == 0 {
		return
	}
	affinity := nodeAffinity(spec)
	for _, n := range near {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{
				// The nearest nodes are in all of them, and get 100 together: the most that one preference may weigh.
				Weight:     int32(max(1, 100/len(near))),
				Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{onHosts(n.Hosts)}},
			})
	}
	if _, hard := b.Job.Spec.NetworkTopology.HighestTier(); hard {
		requireLabel(spec, onHosts(near[len(near)-1].Hosts))
	}
}

// stayWithin has a surplus worker be placed where its step is.
func (b Blueprint) stayWithin(pod *corev1.Pod, i int32) {
	delete(pod.Annotations, v1beta1.AnnotationStepDomain) // From the template.
	within, known := b.StepDomains[i]
	if !known {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[v1beta1.AnnotationStepDomain] = within.Name
	requireLabel(&pod.Spec, onHosts(within.Hosts))
}

// nearEnough are the HyperNodes around the core that surplus is told of.
func (b Blueprint) nearEnough() []Near {
	t := b.Job.Spec.NetworkTopology
	if t == nil {
		return nil
	}
	highest, hard := t.HighestTier()
	var all []Near
	for i, n := range b.Near {
		// The nearest is named however large it is: without it surplus of mode Hard could be anywhere.
		if (!hard || n.Tier <= highest) && (i == 0 || len(n.Hosts) <= MostHosts) {
			all = append(all, n)
		}
	}
	return all
}

func onHosts(hosts []string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}
}

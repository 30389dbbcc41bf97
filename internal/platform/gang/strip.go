package gang

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/internal/platform/weight"
)

const (
	// longestName is how long names in Kubernetes are at most.
	longestName = 253
	// longestMessage is how long a message of a condition may be that is kept, mostConditions how many conditions are.
	longestMessage, mostConditions = 4 << 10, 16
	// mostOfAsks is the largest weight of the resources of a group that are kept.
	mostOfAsks = 16 << 10
)

// Strip drops from a PodGroup what no reconciler reads, before it is cached, and what is too long to be true: anybody may write
// PodGroups of a megabyte. Of another object it drops nothing. share returns resources that are equal to those it gets; other
// objects may have the same ones, so they must not be changed.
func Strip(o any, share func(corev1.ResourceList) corev1.ResourceList) any {
	pg, ok := o.(*schedulingv1beta1.PodGroup)
	if !ok {
		return o
	}
	stripped := &schedulingv1beta1.PodGroup{
		ObjectMeta: pg.ObjectMeta,
		Spec: schedulingv1beta1.PodGroupSpec{
			MinMember: pg.Spec.MinMember, Queue: nameOf(pg.Spec.Queue), PriorityClassName: nameOf(pg.Spec.PriorityClassName),
		},
	}
	if asks := pg.Spec.MinResources; asks != nil && weight.Of(*asks) <= mostOfAsks {
		stripped.Spec.MinResources = ptr.To(share(*asks))
	}
	if t := pg.Spec.NetworkTopology; t != nil {
		stripped.Spec.NetworkTopology = ptr.To(*t)
		stripped.Spec.NetworkTopology.HighestTierName = nameOf(t.HighestTierName)
		stripped.Spec.NetworkTopology.Mode = schedulingv1beta1.NetworkTopologyMode(nameOf(string(t.Mode)))
	}
	for i := range pg.Spec.SubGroupPolicy {
		// That there is one is read, and not what it says.
		if t := pg.Spec.SubGroupPolicy[i].NetworkTopology; t != nil {
			stripped.Spec.SubGroupPolicy = []schedulingv1beta1.SubGroupPolicySpec{{
				NetworkTopology: &schedulingv1beta1.NetworkTopologySpec{},
			}}
			break
		}
	}
	for _, c := range pg.Status.Conditions {
		if c.Type != schedulingv1beta1.PodGroupUnschedulableType && c.Type != schedulingv1beta1.PodGroupScheduled {
			continue
		}
		if len(stripped.Status.Conditions) == mostConditions {
			stripped.Status.Conditions = stripped.Status.Conditions[1:] // Volcano appends.
		}
		stripped.Status.Conditions = append(stripped.Status.Conditions, schedulingv1beta1.PodGroupCondition{
			Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime,
			Message: c.Message[:min(len(c.Message), longestMessage)],
		})
	}
	return stripped
}

// nameOf is a name, or one that nothing has for a text that is too long for a name.
func nameOf(s string) string {
	if len(s) > longestName {
		return s[:longestName] + "..."
	}
	return s
}

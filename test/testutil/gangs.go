package testutil

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// Gangs remembers which gangs had a place for all of their pods. The zero value knows of none.
type Gangs struct{ placed map[types.UID]bool }

// Waiting counts the gangs that never had a place for their minimum. The pods must have been listed after the groups: then the
// place of one gang is seen before the group of another that came after it.
func (g *Gangs) Waiting(groups []schedulingv1beta1.PodGroup, pods []corev1.Pod) int {
	bound := map[string]int{}
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			bound[pods[i].Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]]++
		}
	}
	if g.placed == nil {
		g.placed = map[types.UID]bool{}
	}
	waiting := 0
	for i := range groups {
		group := &groups[i]
		if !g.placed[group.UID] && bound[group.Name] < int(group.Spec.MinMember) {
			waiting++
			continue
		}
		g.placed[group.UID] = true
	}
	return waiting
}

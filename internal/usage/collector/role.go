package collector

import (
	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// roleOf is the role of a pod in its job, by the pod's name, which is known also when the pod is gone; false for a name
// that no pod of such a job has. Pods of all other kinds have one role.
func roleOf(kind, pod string) (sizing.Role, bool) {
	switch job := rendezvous.JobOfPod(pod); kind {
	case v1beta1.ElasticTrainingJobKind:
		role, index, is := rendezvous.ReadName(job, pod)
		return sizing.RoleNamed(role, index), is
	case v1beta1.MergeJobKind:
		index, is := mergepod.PodIndex(job, pod)
		return sizing.RoleOf(index), is
	}
	return sizing.Other, true
}

package collector

import (
	"strings"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// indices read the index of a pod of a job from its name, by the kind of the job.
var indices = map[string]func(job, pod string) (int32, bool){
	v1beta1.ElasticTrainingJobKind: rendezvous.WorkerIndex,
	v1beta1.MergeJobKind:           mergepod.PodIndex,
}

// roleOf is the role of a pod in its job, by the pod's name, which is known also when the pod is gone; false for a name
// that no pod of such a job has. Pods of all other kinds have one role.
func roleOf(kind, pod string) (sizing.Role, bool) {
	indexOf, known := indices[kind]
	if !known {
		return sizing.Other, true
	}
	// A pod is named JOB-worker-0 or the like, and a job may have a hyphen in its name.
	job := cutLast(cutLast(pod))
	index, ok := indexOf(job, pod)
	return sizing.RoleOf(index), ok
}

// cutLast is what is before the last hyphen; empty for what has none.
func cutLast(name string) string { return name[:max(strings.LastIndexByte(name, '-'), 0)] }

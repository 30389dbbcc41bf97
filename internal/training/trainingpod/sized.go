package trainingpod

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Task is what a job does, under whatever name.
func Task(job *v1alpha1.ElasticTrainingJob) string { return cmp.Or(job.Spec.Task, job.Name) }

// Asks are what the pods of a job ask for by its template and its tier's QoS, a role at a time. There is nothing to size in pods
// that have resources as a whole.
func Asks(job *v1alpha1.ElasticTrainingJob, qos config.QoS) []sizing.Ask {
	return asksOf(job.Spec.MaxReplicas, qos, func(i int32) *corev1.PodSpec { return template(job, i) })
}

// MergeAsks are what the pods of a merge ask for by its template and its tier's QoS, a role at a time.
func MergeAsks(job *v1alpha1.MergeJob, qos config.QoS) []sizing.Ask {
	return asksOf(job.Spec.MaxReplicas, qos, func(int32) *corev1.PodSpec { return job.Spec.Template.Spec.DeepCopy() })
}

func asksOf(pods int32, qos config.QoS, template func(i int32) *corev1.PodSpec) []sizing.Ask {
	var asks []sizing.Ask
	for i := range min(pods, 2) {
		spec := template(i)
		if spec.Resources != nil {
			return nil
		}
		ApplyQoS(spec, qos)
		asks = append(asks, sizing.Ask{Role: sizing.RoleOf(i), Containers: spec.Containers})
	}
	return asks
}

// MergeSpec is what pod i of a merge is made of: the template, with the requests that were found for it.
func MergeSpec(job *v1alpha1.MergeJob, i int32) *corev1.PodSpec {
	spec := job.Spec.Template.Spec.DeepCopy()
	sizing.Apply(sizing.RoleOf(i), spec.Containers, job.Status.Sizing)
	return spec
}

// OwnMergeMaster tells whether the first pod of a merge may ask for something else than the others.
func OwnMergeMaster(job *v1alpha1.MergeJob) bool { return enforced(job.Status.Sizing) }

// MergeRequests is what the first n pods of a merge ask for together.
func MergeRequests(job *v1alpha1.MergeJob, n int32) corev1.ResourceList {
	return together(n, !OwnMergeMaster(job), func(i int32) corev1.ResourceList { return Requests(MergeSpec(job, i)) })
}

// CoreRequests is what the first n workers of a job ask for together.
func CoreRequests(job *v1alpha1.ElasticTrainingJob, n int32) corev1.ResourceList {
	return CoreCounted(job, n, nil)
}

// CoreCounted is that as caps and budgets count it: with the accelerators of which these are parts.
func CoreCounted(job *v1alpha1.ElasticTrainingJob, n int32, sharing config.Sharing) corev1.ResourceList {
	return together(n, !OwnMaster(job), func(i int32) corev1.ResourceList { return countedOf(job, i, sharing) })
}

// EachCounted is what each worker but worker 0 asks for, as caps and budgets count it.
func EachCounted(job *v1alpha1.ElasticTrainingJob, sharing config.Sharing) corev1.ResourceList {
	return countedOf(job, 1, sharing)
}

func countedOf(job *v1alpha1.ElasticTrainingJob, i int32, sharing config.Sharing) corev1.ResourceList {
	if !OwnMaster(job) {
		return Counted(&job.Spec.Template.Spec, sharing)
	}
	return Counted(Spec(job, nil, "", i), sharing)
}

// together is what n pods ask for, of which the first may ask for something else than the others.
func together(n int32, alike bool, each func(i int32) corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	if !alike && n > 0 {
		AddRequests(total, each(0), 1)
		n--
	}
	if n > 0 {
		AddRequests(total, each(1), n)
	}
	return total
}

// enforced tells whether pods ask for what was found for them.
func enforced(st *v1alpha1.SizingStatus) bool { return st != nil && st.Mode == v1alpha1.SizingEnforce }

// MemoryLimit is the limit of memory, in bytes, of a container of worker i of a tier of that QoS; 0 for none.
func MemoryLimit(job *v1alpha1.ElasticTrainingJob, qos config.QoS, i int32, container string) int64 {
	return memoryLimit(Spec(job, nil, "", i), qos, container)
}

// MergeMemoryLimit is that of a container of pod i of a merge.
func MergeMemoryLimit(job *v1alpha1.MergeJob, qos config.QoS, i int32, container string) int64 {
	return memoryLimit(MergeSpec(job, i), qos, container)
}

func memoryLimit(spec *corev1.PodSpec, qos config.QoS, container string) int64 {
	ApplyQoS(spec, qos)
	for i := range spec.Containers {
		if spec.Containers[i].Name == container {
			return spec.Containers[i].Resources.Limits.Memory().Value()
		}
	}
	return 0
}

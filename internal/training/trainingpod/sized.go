package trainingpod

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// TaskOf names what a job trains, by which its past runs are found: spec.task, else the job's name.
func TaskOf(job *v1beta1.ElasticTrainingJob) string { return cmp.Or(job.Spec.Task, job.Name) }

// RoleAsks are what the pods of a job ask for by its template and its tier's QoS, one entry per role. It is empty for pods that
// have resources as a whole, which sizing leaves alone.
func RoleAsks(job *v1beta1.ElasticTrainingJob, qos config.QoS) []sizing.Ask {
	var asks []sizing.Ask
	for _, i := range kinds(&job.Spec, job.Spec.MaxReplicas) {
		ask, sizable := askOf(templateOf(job, i), RoleOf(&job.Spec, i), qos)
		if !sizable {
			return nil
		}
		asks = append(asks, ask)
	}
	return asks
}

// MergeAsks is RoleAsks for a merge.
func MergeAsks(job *v1beta1.MergeJob, qos config.QoS) []sizing.Ask {
	var asks []sizing.Ask
	// Pod 0 and pod 1 stand for the two roles: all but the first are alike.
	for i := range min(job.Spec.MaxReplicas, 2) {
		ask, sizable := askOf(job.Spec.Template.Spec.DeepCopy(), sizing.RoleOf(i), qos)
		if !sizable {
			return nil
		}
		asks = append(asks, ask)
	}
	return asks
}

// askOf is what the containers of a pod ask for; false for a pod that has resources as a whole.
func askOf(spec *corev1.PodSpec, role sizing.Role, qos config.QoS) (sizing.Ask, bool) {
	if spec.Resources != nil {
		return sizing.Ask{}, false
	}
	ApplyQoS(spec, qos)
	return sizing.Ask{Role: role, Containers: spec.Containers}, true
}

// MergeSpec is the spec of pod i of a merge: the template, with the requests that sizing found.
func MergeSpec(job *v1beta1.MergeJob, i int32) *corev1.PodSpec {
	spec := job.Spec.Template.Spec.DeepCopy()
	sizing.ApplyRequests(sizing.RoleOf(i), spec.Containers, job.Status.Sizing)
	if claim := job.Spec.Store.Claim; claim != nil {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: storeVolume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}})
	}
	return spec
}

// storeVolume is the volume of a merge's store.
const storeVolume = "tideline-store"

// MountStore mounts the volume of a merge's store in a container, unless the user has mounted something at that path. It does
// nothing for an empty path.
func MountStore(c *corev1.Container, path string) {
	taken := func(m corev1.VolumeMount) bool { return m.MountPath == path }
	if path != "" && !slices.ContainsFunc(c.VolumeMounts, taken) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: storeVolume, MountPath: path})
	}
}

// OwnMergeMaster is true if the first pod of a merge may ask for other resources than the others.
func OwnMergeMaster(job *v1beta1.MergeJob) bool { return isEnforced(job.Status.Sizing) }

// MergeRequests is what the first n pods of a merge ask for together.
func MergeRequests(job *v1beta1.MergeJob, n int32) corev1.ResourceList {
	return sumRequests(n, !OwnMergeMaster(job), func(i int32) corev1.ResourceList { return PodRequests(MergeSpec(job, i)) })
}

// MergeCounted is what n pods of a merge ask for by its template, as caps and budgets count it: see CountedRequests.
func MergeCounted(spec *v1beta1.MergeJobSpec, n int32, sharing config.Sharing) corev1.ResourceList {
	return sumRequests(n, true, func(int32) corev1.ResourceList { return CountedRequests(&spec.Template.Spec, sharing, nil) })
}

// CoreRequests is what the first n workers of a job ask for together.
func CoreRequests(job *v1beta1.ElasticTrainingJob, n int32) corev1.ResourceList {
	return CoreCounted(job, n, nil, nil)
}

// CoreCounted is CoreRequests as caps and budgets count it: see CountedRequests. All workers claim the same devices.
func CoreCounted(
	job *v1beta1.ElasticTrainingJob, n int32, sharing config.Sharing, claimed corev1.ResourceList,
) corev1.ResourceList {
	total := corev1.ResourceList{}
	if areAlike(job) {
		AddRequests(total, countedOf(job, Ordinary, sharing, claimed), n)
		return total
	}
	for _, i := range kinds(&job.Spec, n) {
		AddRequests(total, countedOf(job, i, sharing, claimed), CountRole(&job.Spec, RoleOf(&job.Spec, i), n))
	}
	return total
}

// EachCounted is what each worker of the template but worker 0 asks for, as caps and budgets count it.
func EachCounted(job *v1beta1.ElasticTrainingJob, sharing config.Sharing, claimed corev1.ResourceList) corev1.ResourceList {
	return countedOf(job, Ordinary, sharing, claimed)
}

func countedOf(
	job *v1beta1.ElasticTrainingJob, i int32, sharing config.Sharing, claimed corev1.ResourceList,
) corev1.ResourceList {
	if areAlike(job) {
		return CountedRequests(&job.Spec.Template.Spec, sharing, claimed)
	}
	return CountedRequests(WorkerSpec(job, nil, "", i), sharing, claimed)
}

// sumRequests is what n pods ask for together. Unless they are alike, the first may ask for something else than the others.
func sumRequests(n int32, alike bool, each func(i int32) corev1.ResourceList) corev1.ResourceList {
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

// isEnforced is true if pods are created with the requests that sizing found.
func isEnforced(st *v1beta1.SizingStatus) bool {
	return st != nil && st.Mode == v1beta1.SizingEnforce
}

// MemoryLimit is the memory limit, in bytes, of a container of worker i in a tier of that QoS; 0 for none.
func MemoryLimit(job *v1beta1.ElasticTrainingJob, qos config.QoS, i int32, container string) int64 {
	return memoryLimit(WorkerSpec(job, nil, "", i), qos, container)
}

// MergeMemoryLimit is MemoryLimit for pod i of a merge.
func MergeMemoryLimit(job *v1beta1.MergeJob, qos config.QoS, i int32, container string) int64 {
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

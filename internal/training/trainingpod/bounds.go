package trainingpod

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/weight"
)

// CheckProtection returns an error if the job's shrink.minRunSeconds is more than its tier allows.
func CheckProtection(job *v1beta1.ElasticTrainingJobSpec, tier config.Tier) *field.Error {
	asked, most := ptr.Deref(job.Elasticity.Shrink.MinRunSeconds, 0), tier.MaxMinSurplusRunSeconds
	if asked <= most {
		return nil
	}
	return field.Invalid(field.NewPath("spec", "elasticity", "shrink", "minRunSeconds"), asked, fmt.Sprintf(
		"must be at most %d s in tier %s, because gangs wait that long (tiers[].maxMinSurplusRunSeconds of the operator's "+
			"configuration): lower it, or ask an administrator to raise the limit", most, tier.Name))
}

// CheckJobGrace returns an error for each grace period of the job, for termination and for a checkpoint, that is longer than the
// operator's configuration allows.
func CheckJobGrace(job *v1beta1.ElasticTrainingJobSpec, limits config.Limits) field.ErrorList {
	return append(checkGrace(&job.Template.Spec, limits),
		graceWithin(field.NewPath("spec", "checkpoint", "graceSeconds"), int64(ptr.Deref(job.Checkpoint.GraceSeconds, 0)), limits)...)
}

// CheckMergeGrace is CheckJobGrace for the template of a merge.
func CheckMergeGrace(job *v1beta1.MergeJobSpec, limits config.Limits) field.ErrorList {
	return checkGrace(&job.Template.Spec, limits)
}

// CheckJobWeight returns an error for a template that is too large to be kept, with what roles and worker 0 have in place of
// parts of it, and so to be run.
func CheckJobWeight(job *v1beta1.ElasticTrainingJobSpec) field.ErrorList {
	return checkWeight(weight.Of(job.Template) + weight.Of(job.Roles) + weight.Of(job.Master))
}

// CheckMergeWeight is CheckJobWeight for the template of a merge.
func CheckMergeWeight(job *v1beta1.MergeJobSpec) field.ErrorList {
	return checkWeight(weight.Of(job.Template))
}

func checkWeight(n int) field.ErrorList {
	if n > weight.MostOfTemplate {
		return field.ErrorList{TooHeavy(n)}
	}
	return nil
}

// CheckDevices returns an error for each device, or other extended resource, that a container requests without a limit of the
// same amount, for which the API server would refuse the pods, and for each part of a device that is larger than a device.
func CheckDevices(template *corev1.PodTemplateSpec) field.ErrorList {
	var all field.ErrorList
	check := func(at *field.Path, containers []corev1.Container) {
		for i := range containers {
			all = append(all, checkResources(at.Index(i).Child("resources"), &containers[i].Resources)...)
		}
	}
	at := field.NewPath("spec", "template", "spec")
	check(at.Child("initContainers"), template.Spec.InitContainers)
	check(at.Child("containers"), template.Spec.Containers)
	return all
}

// checkResources is CheckDevices for the resources of one container; nil for none.
func checkResources(at *field.Path, r *corev1.ResourceRequirements) (all field.ErrorList) {
	if r == nil {
		return nil
	}
	for _, name := range perCent {
		if asked := r.Limits[name]; asked.CmpInt64(100) > 0 {
			all = append(all, field.Invalid(at.Child("limits").Key(string(name)), asked.String(),
				"must be at most 100, because it is per cent of each device, and no device has more: lower it, or ask for more devices "+
					"by volcano.sh/vgpu-number"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		asked, limit := r.Requests[name], r.Limits[name]
		if isExtended(name) && asked.Cmp(limit) != 0 {
			all = append(all, field.Invalid(at.Child("requests").Key(string(name)), asked.String(),
				"must be its limit too, because nodes have no more of it than they say: write it under limits, and leave requests out"))
		}
	}
	return all
}

// perCent are resources of Volcano's vGPUs that are per cent of each device.
var perCent = []corev1.ResourceName{"volcano.sh/vgpu-cores", "volcano.sh/vgpu-memory-percentage"}

// isExtended tells whether a resource is of a device plugin, or of whoever else adds to what Kubernetes itself knows.
func isExtended(name corev1.ResourceName) bool {
	domain, _, qualified := strings.Cut(string(name), "/")
	return qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// TooHeavy is what is said of a template that weighs n bytes.
func TooHeavy(n int) *field.Error {
	return field.Invalid(field.NewPath("spec", "template"), n, fmt.Sprintf("takes so many bytes of memory, roles and master "+
		"included, and must take at most %d, because the operator keeps the templates of all jobs: move long texts into the image "+
		"or a ConfigMap", weight.MostOfTemplate))
}

func checkGrace(spec *corev1.PodSpec, limits config.Limits) field.ErrorList {
	return graceWithin(field.NewPath("spec", "template", "spec", "terminationGracePeriodSeconds"),
		ptr.Deref(spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds), limits)
}

func graceWithin(at *field.Path, asked int64, limits config.Limits) field.ErrorList {
	if asked <= int64(limits.MaxGraceSeconds) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, asked, fmt.Sprintf("must be at most %d s, because others wait that long for the room "+
		"(limits.maxGraceSeconds of the operator's configuration): lower it, or ask an administrator to raise the limit",
		limits.MaxGraceSeconds))}
}

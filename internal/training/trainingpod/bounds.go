package trainingpod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// CheckProtection returns that a job asks for its surplus to be left alone for longer than its tier allows; nil for one that does
// not.
func CheckProtection(job *v1alpha1.ElasticTrainingJobSpec, tier config.Tier) *field.Error {
	asked, most := ptr.Deref(job.Elasticity.MinSurplusRunSeconds, 0), tier.MaxMinSurplusRunSeconds
	if asked <= most {
		return nil
	}
	return field.Invalid(field.NewPath("spec", "elasticity", "minSurplusRunSeconds"), asked, fmt.Sprintf(
		"is more than the %d s for which the operator's configuration lets surplus of tier %s be left alone while gangs wait "+
			"(tiers[].maxMinSurplusRunSeconds): lower it, or ask for the limit to be raised", most, tier.Name))
}

// CheckJobGrace returns where workers of a job ask for more time to leave than the operator's configuration allows: by the
// template, or for a checkpoint.
func CheckJobGrace(job *v1alpha1.ElasticTrainingJobSpec, limits config.Limits) field.ErrorList {
	return append(checkGrace(&job.Template.Spec, limits),
		graceWithin(field.NewPath("spec", "checkpoint", "graceSeconds"), int64(ptr.Deref(job.Checkpoint.GraceSeconds, 0)), limits)...)
}

// CheckMergeGrace returns what CheckJobGrace does, of the template of a merge.
func CheckMergeGrace(job *v1alpha1.MergeJobSpec, limits config.Limits) field.ErrorList {
	return checkGrace(&job.Template.Spec, limits)
}

func checkGrace(spec *corev1.PodSpec, limits config.Limits) field.ErrorList {
	return graceWithin(field.NewPath("spec", "template", "spec", "terminationGracePeriodSeconds"),
		ptr.Deref(spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds), limits)
}

func graceWithin(at *field.Path, asked int64, limits config.Limits) field.ErrorList {
	if asked <= int64(limits.MaxGraceSeconds) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, asked, fmt.Sprintf("is more than the %d s that the operator's configuration gives who "+
		"leaves (limits.maxGraceSeconds): lower it, or ask for the limit to be raised", limits.MaxGraceSeconds))}
}

package worker

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/config"
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

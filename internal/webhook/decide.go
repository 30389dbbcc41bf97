package webhook

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/config"
)

// assignOwner is the verb on elastictrainingjobs that lets a user name somebody else as the owner of a job.
const assignOwner = "assign-owner"

// Decision is what is said to somebody who creates a job.
type Decision struct {
	// Refused are the fields that are refused whoever creates the job.
	Refused field.ErrorList
	// NamesAnother is true when the job names an owner other than its creator, which takes the right to assign-owner.
	NamesAnother bool
}

// Decide judges what the schema of a job cannot: its owner, by who creates it, and its tier and size, by the
// operator's configuration.
func Decide(spec *v1alpha1.ElasticTrainingJobSpec, user string, cfg *config.Configuration) Decision {
	var d Decision
	if _, known := cfg.Tiers.Find(spec.Tier); !known {
		d.Refused = append(d.Refused, field.Invalid(field.NewPath("spec", "tier"), spec.Tier, fmt.Sprintf(
			"is not a tier of the operator's configuration, which knows %s: name one of these", cfg.Tiers.Names())))
	}
	if most := cfg.Limits.MaxWorkersPerJob; spec.MaxReplicas > most {
		d.Refused = append(d.Refused, field.Invalid(field.NewPath("spec", "maxReplicas"), spec.MaxReplicas, fmt.Sprintf(
			"is more than the %d workers that the operator's configuration allows a job (limits.maxWorkersPerJob): ask for fewer", most)))
	}
	// A job without an owner was not seen by the mutating webhook. It is nobody's, which takes no right.
	d.NamesAnother = spec.Owner != "" && spec.Owner != user
	return d
}

// notAssignable refuses an owner because the user has no right to name somebody else.
func notAssignable(owner, user, namespace string) *field.Error {
	return field.Forbidden(field.NewPath("spec", "owner"), fmt.Sprintf(
		"%q is not %q, who creates the job, and naming somebody else takes the right to %s on elastictrainingjobs.%s in namespace %s: "+
			"leave the owner out, or have an admin bind ClusterRole tideline-assign-owner",
		owner, user, assignOwner, v1alpha1.GroupVersion.Group, namespace))
}

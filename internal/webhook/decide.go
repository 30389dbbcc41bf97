package webhook

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/config"
	"github.com/tideline-io/tideline/internal/worker"
)

const (
	// assignOwner is the verb on elastictrainingjobs that lets a user name somebody else as the owner of a job.
	assignOwner = "assign-owner"
	// useAccount is the verb on serviceaccounts that lets a user who may not create pods have workers run as one.
	useAccount = "use"
)

// Creation says who creates which job.
type Creation struct {
	User string
	// Job has no name yet if the API server is to generate one.
	Job types.NamespacedName
}

// Decision is what is said to somebody who creates a job.
type Decision struct {
	// Refused are the fields that are refused whoever creates the job.
	Refused field.ErrorList
	// Claims are what the job asks for that not everybody may.
	Claims []Claim
}

// Claim is something that a job asks for, and that takes a right of whoever creates it.
type Claim struct {
	// Rights are those of which one will do, in the order in which they are asked for.
	Rights []authorizationv1.ResourceAttributes
	// Refusal is what a user is told who has none of them.
	Refusal *field.Error
}

// Decide judges what the schema of a job cannot: its tier and size, by the operator's configuration, and its owner and its
// ServiceAccount, by who creates it.
func Decide(spec *v1alpha1.ElasticTrainingJobSpec, by Creation, cfg *config.Configuration) Decision {
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
	if spec.Owner != "" && spec.Owner != by.User {
		d.Claims = append(d.Claims, claimOwner(spec.Owner, by))
	}
	if account, name := worker.Account(&spec.Template.Spec); account != "" && account != worker.DefaultAccount {
		d.Claims = append(d.Claims, claimAccount(account, name, by))
	}
	return d
}

func claimOwner(owner string, by Creation) Claim {
	return Claim{
		Rights: []authorizationv1.ResourceAttributes{{
			Verb: assignOwner, Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
			Resource: "elastictrainingjobs", Namespace: by.Job.Namespace, Name: by.Job.Name,
		}},
		Refusal: field.Forbidden(field.NewPath("spec", "owner"), fmt.Sprintf(
			"%q is not %q, who creates the job, and naming somebody else takes the right to %s on elastictrainingjobs.%s in namespace "+
				"%s: leave the owner out, or have an admin bind ClusterRole tideline-assign-owner",
			owner, by.User, assignOwner, v1alpha1.GroupVersion.Group, by.Job.Namespace)),
	}
}

// claimAccount claims a ServiceAccount: whoever may create pods may run them as any ServiceAccount of the namespace, and needs no
// right of ours for what a job does.
func claimAccount(account, name string, by Creation) Claim {
	version, namespace := corev1.SchemeGroupVersion.Version, by.Job.Namespace
	return Claim{
		Rights: []authorizationv1.ResourceAttributes{
			{Verb: "create", Version: version, Resource: "pods", Namespace: namespace},
			{Verb: useAccount, Version: version, Resource: "serviceaccounts", Namespace: namespace, Name: account},
		},
		Refusal: field.Forbidden(field.NewPath("spec", "template", "spec", name), fmt.Sprintf(
			"workers that run as ServiceAccount %q take the right to create pods in namespace %s, or to %s serviceaccounts %s there, and "+
				"%q has neither: leave %s out, or have an admin give one of these rights",
			account, namespace, useAccount, account, by.User, name)),
	}
}

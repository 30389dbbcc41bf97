package webhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/ownership"
)

// restoreIdentity keeps the submitter of a job that changes, and its owner if the new object names none. So a job can be
// replaced by a manifest without them, as a Service can without its clusterIP.
func restoreIdentity(before []byte, job *newJob) admission.Response {
	var was newJob
	if err := json.Unmarshal(before, &was); err != nil || was.Spec == nil {
		return admission.Allowed("")
	}
	var patches []jsonpatch.JsonPatchOperation
	if isGiven(was.Spec.Owner) && !isGiven(job.Spec.Owner) {
		patches = append(patches, jsonpatch.NewOperation("add", "/spec/owner", was.Spec.Owner))
	}
	switch given := isGiven(was.Spec.Submitter); {
	case given && !bytes.Equal(was.Spec.Submitter, job.Spec.Submitter):
		patches = append(patches, jsonpatch.NewOperation("add", "/spec/submitter", was.Spec.Submitter))
	case !given && len(job.Spec.Submitter) > 0:
		patches = append(patches, jsonpatch.NewOperation("remove", "/spec/submitter", nil))
	}
	return admission.Patched("", patches...)
}

// DecideChange judges a change of a job. What the old object would be refused for too is not refused again, so that a limit that
// was lowered since does not block edits of other fields.
func DecideChange(before, job *v1beta1.ElasticTrainingJob, by Creation, rules Rules) Decision {
	conditions := before.Status.Conditions
	d := Decision{Refused: newRefusals(refuseJob(before, conditions, rules), refuseJob(job, conditions, rules))}
	was := claimant{before.Spec.Tier, before.Status.Tier, before.Spec.Owner, before.Spec.Submitter, conditions}
	is := claimant{job.Spec.Tier, before.Status.Tier, job.Spec.Owner, job.Spec.Submitter, conditions}
	d.claimIdentity(was, is, forTraining, by, rules)
	// Whoever changes the template has other code run as that ServiceAccount.
	if !equality.Semantic.DeepEqual(before.Spec.Template, job.Spec.Template) {
		d.claimAccount(&job.Spec.Template.Spec, forTraining, by)
	}
	return d
}

// DecideMergeChange is DecideChange for merges.
func DecideMergeChange(before, merge *v1beta1.MergeJob, by Creation, rules Rules) Decision {
	conditions := before.Status.Conditions
	d := Decision{Refused: newRefusals(refuseMerge(&before.Spec, conditions, rules), refuseMerge(&merge.Spec, conditions, rules))}
	was := claimant{before.Spec.Tier, before.Status.Tier, before.Spec.Owner, before.Spec.Submitter, conditions}
	is := claimant{merge.Spec.Tier, before.Status.Tier, merge.Spec.Owner, merge.Spec.Submitter, conditions}
	d.claimIdentity(was, is, forMerge, by, rules)
	if !equality.Semantic.DeepEqual(before.Spec.Template, merge.Spec.Template) {
		d.claimAccount(&merge.Spec.Template.Spec, forMerge, by)
	}
	if before.Spec.Store.CredentialsSecret() != merge.Spec.Store.CredentialsSecret() {
		d.claimSecret(&merge.Spec.Store, by)
	}
	return d
}

// changesJob is false for a change that DecideChange always allows.
func changesJob(before, job *v1beta1.ElasticTrainingJob) bool {
	judged := func(s *v1beta1.ElasticTrainingJobSpec) v1beta1.ElasticTrainingJobSpec {
		return v1beta1.ElasticTrainingJobSpec{
			MinReplicas: s.MinReplicas, MaxReplicas: s.MaxReplicas, Template: s.Template, Tier: s.Tier, Owner: s.Owner,
			Submitter: s.Submitter, Elasticity: s.Elasticity, Checkpoint: s.Checkpoint, Master: s.Master, Accelerator: s.Accelerator,
			DataSets: s.DataSets, Roles: s.Roles, Framework: v1beta1.Framework{Type: s.Framework.Type},
		}
	}
	return !equality.Semantic.DeepEqual(judged(&before.Spec), judged(&job.Spec))
}

// changesMerge is false for a change that DecideMergeChange always allows.
func changesMerge(before, merge *v1beta1.MergeJob) bool {
	judged := func(s *v1beta1.MergeJobSpec) v1beta1.MergeJobSpec {
		return v1beta1.MergeJobSpec{
			Tier: s.Tier, Owner: s.Owner, Submitter: s.Submitter, Pool: s.Pool, Schedule: s.Schedule, Store: s.Store,
			MinReplicas: s.MinReplicas, MaxReplicas: s.MaxReplicas, Template: s.Template,
		}
	}
	return !equality.Semantic.DeepEqual(judged(&before.Spec), judged(&merge.Spec))
}

// newRefusals are those that the object before the change did not have.
func newRefusals(before, now field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(now, func(refusal *field.Error) bool {
		return slices.ContainsFunc(before, func(old *field.Error) bool { return old.Error() == refusal.Error() })
	})
}

// claimant is what decides on the tier of a job.
type claimant struct {
	// tier is what the job asks for, and recorded the tier in its status, which counts if it asks for none.
	tier, recorded string
	owner          string
	submitter      *v1beta1.Submitter
	conditions     []metav1.Condition
}

// tierIn is the place of the job's tier among those of the configuration, and its name. A tier that the configuration does not
// have is below all others, because no job runs in it.
func (c claimant) tierIn(rules Rules) (int, string) {
	name := cmp.Or(c.tier, c.recorded)
	if name == "" {
		owner := ownership.OwnerOf(c.owner, c.submitter, c.conditions)
		standard, _ := rules.Config.Tiers.OpenTo(rules.Profile, owner).FindTier("")
		name = standard.Name
	}
	return slices.IndexFunc(rules.Config.Tiers, func(t config.Tier) bool { return t.Name == name }), name
}

// claimIdentity judges changes of the submitter, the owner and the tier.
func (d *Decision) claimIdentity(was, is claimant, of words, by Creation, rules Rules) {
	if !equality.Semantic.DeepEqual(was.submitter, is.submitter) {
		d.Refused = append(d.Refused, field.Forbidden(field.NewPath("spec", "submitter"), fmt.Sprintf(
			"it records who created the %s, and only the webhook writes it: leave it as it is", of.job)))
	}
	if was.owner != is.owner {
		d.Claims = append(d.Claims, Claim{
			Rights: rightsToAssign(of, by),
			Refusal: field.Forbidden(field.NewPath("spec", "owner"), fmt.Sprintf(
				"the owner is %q. To make %q the owner, a user needs the verb %s on %s.%s in namespace %s, which %q does not have: "+
					"leave the owner as it is, or ask an administrator to bind ClusterRole tideline-assign-owner",
				was.owner, is.owner, assignOwner, of.resource, v1beta1.GroupVersion.Group, by.Job.Namespace, by.User)),
		})
	}
	if was.tier == is.tier || rules.Profile == nil {
		return
	}
	from, lower := was.tierIn(rules)
	to, higher := is.tierIn(rules)
	// Every job may have the lowest tier, also in place of a tier that the configuration has no more.
	if to <= max(from, 0) {
		return
	}
	d.Claims = append(d.Claims, Claim{
		Rights: rightsToApprove(rules.Profile.Name),
		Refusal: field.Forbidden(field.NewPath("spec", "tier"), fmt.Sprintf(
			"to raise the tier of a %s from %s to %s, a user needs the right to %s resourcequotaprofiles.%s %s, which %q does not "+
				"have: ask a user who has it, or ask an administrator to bind ClusterRole tideline-approve",
			of.job, lower, higher, approve, v1beta1.GroupVersion.Group, rules.Profile.Name, by.User)),
	})
}

func rightsToApprove(profile string) []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{{
		Verb: approve, Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version,
		Resource: "resourcequotaprofiles", Name: profile,
	}}
}

// Package ownership finds the entries of a profile's members that concern the owner of a job.
package ownership

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Owner is the user that a job belongs to, with groups. No entry concerns the zero Owner.
type Owner struct {
	// User is the user's name at the API server.
	User string
	// Groups are the user's groups that count, among those that profiles name.
	Groups []string
}

// OfTraining is the owner of a job. webhooksOff is true if the operator serves no webhooks.
func OfTraining(job *v1beta1.ElasticTrainingJob, webhooksOff bool) Owner {
	if IsUnchecked(job.Generation, job.Status.ObservedGeneration, webhooksOff) {
		return Owner{User: job.Spec.Owner}
	}
	return OwnerOf(job.Spec.Owner, job.Spec.Submitter, job.Status.Conditions)
}

// OfMerge is [OfTraining] for merges.
func OfMerge(merge *v1beta1.MergeJob, webhooksOff bool) Owner {
	if IsUnchecked(merge.Generation, merge.Status.ObservedGeneration, webhooksOff) {
		return Owner{User: merge.Spec.Owner}
	}
	return OwnerOf(merge.Spec.Owner, merge.Spec.Submitter, merge.Status.Conditions)
}

// OwnerOf is the owner of a job with these conditions. The groups of another user who submitted the job do not count. If
// condition OwnerChecked is False no groups count, because no webhook has checked what the job's creator wrote.
func OwnerOf(user string, by *v1beta1.Submitter, conditions []metav1.Condition) Owner {
	if by == nil || by.Username != user || meta.IsStatusConditionFalse(conditions, v1beta1.ConditionOwnerChecked) {
		return Owner{User: user}
	}
	return Owner{User: user, Groups: by.Groups}
}

// IsUnchecked is true for a job whose spec is new or was changed since its last status, if the operator serves no webhooks: then
// nothing has checked which owner and submitter it names. The next status records that in condition OwnerChecked.
func IsUnchecked(generation, observedGeneration int64, webhooksOff bool) bool {
	return webhooksOff && observedGeneration != generation
}

// MemberEntries yields the entries of a profile that name the owner, as user or by a group.
func (o Owner) MemberEntries(profile *v1beta1.ResourceQuotaProfile) iter.Seq[v1beta1.ProfileMember] {
	return func(yield func(v1beta1.ProfileMember) bool) {
		for _, m := range profile.Spec.Members {
			if o.isNamedBy(m) && !yield(m) {
				return
			}
		}
	}
}

func (o Owner) isNamedBy(m v1beta1.ProfileMember) bool {
	switch {
	case m.Name == "":
		return false
	case m.Kind == v1beta1.MemberGroup:
		return slices.Contains(o.Groups, m.Name)
	}
	return m.Name == o.User
}

// GroupsIn are the owner's groups that entries of a profile name, sorted.
func (o Owner) GroupsIn(profile *v1beta1.ResourceQuotaProfile) []string {
	var groups []string
	for m := range o.MemberEntries(profile) {
		if m.Kind == v1beta1.MemberGroup {
			groups = append(groups, m.Name)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// NamedGroups are the groups that any of the profiles names, sorted.
func NamedGroups(groups []string, profiles []*v1beta1.ResourceQuotaProfile) []string {
	user, named := Owner{Groups: groups}, []string{}
	for _, p := range profiles {
		named = append(named, user.GroupsIn(p)...)
	}
	slices.Sort(named)
	return slices.Compact(named)
}

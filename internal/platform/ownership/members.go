// Package ownership says which entries of a profile's members are of the owner of a job.
package ownership

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// Owner is who answers for a job. The zero value is nobody, of whom no entry is.
type Owner struct {
	// User as the API server names them.
	User string
	// Groups of the user that count, of those that profiles name.
	Groups []string
}

// OfTraining is the owner of a job. WebhooksOff is true where the operator serves no webhooks.
func OfTraining(job *v1alpha1.ElasticTrainingJob, webhooksOff bool) Owner {
	if Unchecked(job.Status.ObservedGeneration, webhooksOff) {
		return Owner{User: job.Spec.Owner}
	}
	return Of(job.Spec.Owner, job.Spec.OwnerGroups, job.Status.Conditions)
}

// OfMerge is [OfTraining] for merges.
func OfMerge(merge *v1alpha1.MergeJob, webhooksOff bool) Owner {
	if Unchecked(merge.Status.ObservedGeneration, webhooksOff) {
		return Owner{User: merge.Spec.Owner}
	}
	return Of(merge.Spec.Owner, merge.Spec.OwnerGroups, merge.Status.Conditions)
}

// Of is the owner of a job with these conditions. Groups that nobody checked, as condition OwnerChecked says for good, are what
// the job's creator wrote, and do not count.
func Of(user string, groups []string, conditions []metav1.Condition) Owner {
	if meta.IsStatusConditionFalse(conditions, v1alpha1.ConditionOwnerChecked) {
		groups = nil
	}
	return Owner{User: user, Groups: groups}
}

// Unchecked tells of a job that has no status yet, by the generation that this speaks of, that it came while there were no
// webhooks. Its first status says so, by condition OwnerChecked.
func Unchecked(observedGeneration int64, webhooksOff bool) bool {
	return webhooksOff && observedGeneration == 0
}

// Entries are the entries of a profile that are of the owner, by name or by group.
func (o Owner) Entries(profile *v1alpha1.ResourceQuotaProfile) iter.Seq[v1alpha1.ProfileMember] {
	return func(yield func(v1alpha1.ProfileMember) bool) {
		for _, m := range profile.Spec.Members {
			named := m.User != "" && m.User == o.User
			if (named || o.in(m.Group)) && !yield(m) {
				return
			}
		}
	}
}

func (o Owner) in(group string) bool { return group != "" && slices.Contains(o.Groups, group) }

// GroupsIn are the groups by which entries of a profile are of the owner, sorted.
func (o Owner) GroupsIn(profile *v1alpha1.ResourceQuotaProfile) []string {
	var groups []string
	for m := range o.Entries(profile) {
		if m.Group != "" {
			groups = append(groups, m.Group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// Named are those of the groups that any of the profiles names, sorted.
func Named(groups []string, profiles []*v1alpha1.ResourceQuotaProfile) []string {
	user, named := Owner{Groups: groups}, []string{}
	for _, p := range profiles {
		named = append(named, user.GroupsIn(p)...)
	}
	slices.Sort(named)
	return slices.Compact(named)
}

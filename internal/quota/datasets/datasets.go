// Package datasets finds the data that trainings name among the data sets of their profile, and tells which trainings use what.
package datasets

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// A training names a version; the profile of its namespace says where that is. An attempt begins with what the profile says then,
// and keeps it:
//
//	profile:  clicks/2026-11 -> claim clicks-2026-11      job: clicks/2026-11
//	                  \_________________________________________/
//	                       status.attempt.dataSets -> pods

// Missing is a version that a training names and its profile does not have.
type Missing struct {
	// At is its index in spec.dataSets.
	At int
	// Field of it that names what is missing: name, or version if the profile has the data set but not this version.
	Field string
	// Why says what is missing and what there is instead, as in "profile ads has no data set clicks; it has words".
	Why string
}

// Places are those of all data that a training names, in its order: where the attempt before had a version, so that a job goes on
// with what it began with, and else where the profile says. Versions that are in neither are in missing instead. profile is nil
// for a namespace that belongs to none.
func Places(
	asked []v1beta1.JobDataSet, had []v1beta1.DataPlace, profile *v1beta1.ResourceQuotaProfile,
) (places []v1beta1.DataPlace, missing []Missing) {
	for i, a := range asked {
		before := slices.IndexFunc(had, func(p v1beta1.DataPlace) bool { return p.Name == a.Name && p.Version == a.Version })
		if before >= 0 {
			places = append(places, had[before])
			continue
		}
		place, lacks := find(a, profile)
		if lacks != nil {
			lacks.At = i
			missing = append(missing, *lacks)
			continue
		}
		places = append(places, place)
	}
	return places, missing
}

// find looks a version up in the profile.
func find(a v1beta1.JobDataSet, profile *v1beta1.ResourceQuotaProfile) (v1beta1.DataPlace, *Missing) {
	if profile == nil {
		return v1beta1.DataPlace{}, &Missing{
			Field: "name", Why: "the namespace belongs to no ResourceQuotaProfile, and data sets are those of profiles",
		}
	}
	sets := profile.Spec.DataSets
	set := slices.IndexFunc(sets, func(d v1beta1.ProfileDataSet) bool { return d.Name == a.Name })
	if set < 0 {
		return v1beta1.DataPlace{}, &Missing{Field: "name", Why: fmt.Sprintf("profile %s has no data set %s; it has %s",
			profile.Name, a.Name, listed(sets, func(d v1beta1.ProfileDataSet) string { return d.Name }))}
	}
	versions := sets[set].Versions
	version := slices.IndexFunc(versions, func(v v1beta1.DataVersion) bool { return v.Version == a.Version })
	if version < 0 {
		return v1beta1.DataPlace{}, &Missing{Field: "version", Why: fmt.Sprintf("data set %s of profile %s has no version %s; "+
			"it has %s", a.Name, profile.Name, a.Version, listed(versions, func(v v1beta1.DataVersion) string { return v.Version }))}
	}
	v := versions[version]
	return v1beta1.DataPlace{Name: a.Name, Version: a.Version, Claim: v.Claim, Folder: v.Folder, Prefix: v.Prefix}, nil
}

// Agree tells whether places are those of the data that a training names.
func Agree(places []v1beta1.DataPlace, asked []v1beta1.JobDataSet) bool {
	return slices.EqualFunc(places, asked, func(p v1beta1.DataPlace, a v1beta1.JobDataSet) bool {
		return p.Name == a.Name && p.Version == a.Version
	})
}

// mostListed is how many names a message has.
const mostListed = 8

func listed[T any](all []T, name func(T) string) string {
	var names []string
	for _, each := range all[:min(len(all), mostListed)] {
		names = append(names, name(each))
	}
	if more := len(all) - mostListed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// Use is a training that has not ended, and the data that it names.
type Use struct {
	Job types.NamespacedName
	// Data are the data sets and versions of its spec and of its attempt.
	Data []Version
}

// Version names a version of a data set.
type Version struct{ Name, Version string }

// UsedBy are the versions that a training uses: those that it asks for, and those that its attempt began with, while that has
// pods. It is empty for a training that has ended.
func UsedBy(job *v1beta1.ElasticTrainingJob) []Version {
	if job.Status.CompletionTime != nil {
		return nil
	}
	used := map[Version]bool{}
	for _, a := range job.Spec.DataSets {
		used[Version{a.Name, a.Version}] = true
	}
	stopped := job.Status.Phase == v1beta1.PhaseSuspended && job.Status.Replicas == 0
	if a := job.Status.Attempt; a != nil && !stopped {
		for _, p := range a.DataSets {
			used[Version{p.Name, p.Version}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(used), func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
}

// StatusOf says of each version of the profile who uses it. uses are those of the profile's namespaces; spaceOf is what the
// claims of a name have in them together, nil for none.
func StatusOf(sets []v1beta1.ProfileDataSet, uses []Use, spaceOf func(claim string) *resource.Quantity) []v1beta1.DataSetStatus {
	users := map[Version][]string{}
	for _, u := range uses {
		for _, v := range u.Data {
			users[v] = append(users[v], u.Job.String())
		}
	}
	var all []v1beta1.DataSetStatus
	for _, d := range sets {
		for _, v := range d.Versions {
			by := users[Version{d.Name, v.Version}]
			slices.Sort(by)
			st := v1beta1.DataSetStatus{Name: d.Name, Version: v.Version, Jobs: int32(len(by))}
			if len(by) > 0 {
				st.UsedBy = by[:min(len(by), v1beta1.DataUsersLimit)]
			}
			if v.Claim != "" {
				st.Space = spaceOf(v.Claim)
			}
			all = append(all, st)
		}
	}
	return all
}

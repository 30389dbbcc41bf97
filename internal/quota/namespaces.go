package quota

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Namespace is a namespace as far as profiles choose by it.
type Namespace struct {
	Name   string
	Labels map[string]string
}

// Conflict is a namespace that one profile chooses and that belongs to another.
type Conflict struct{ Namespace, Profile string }

// Index finds the profile of a namespace. If several profiles select a namespace, it belongs to the oldest.
type Index struct{ entries []entry }

type entry struct {
	profile  *v1beta1.ResourceQuotaProfile
	selector labels.Selector
}

// NewIndex returns an index of profiles. A profile with an invalid or empty selector has no namespace.
func NewIndex(profiles []*v1beta1.ResourceQuotaProfile) *Index {
	x := &Index{}
	selectors.forgetOthers(profiles)
	for _, p := range profiles {
		if selector := selectors.compile(p); selector != nil && !selector.Empty() {
			x.entries = append(x.entries, entry{p, selector})
		}
	}
	slices.SortFunc(x.entries, func(a, b entry) int {
		return cmp.Or(
			a.profile.CreationTimestamp.Compare(b.profile.CreationTimestamp.Time), cmp.Compare(a.profile.Name, b.profile.Name))
	})
	return x
}

// Selects tells whether a profile selects a namespace with these labels, which may belong to an older profile all the same.
func Selects(profile *v1beta1.ResourceQuotaProfile, namespace map[string]string) bool {
	selector := selectors.compile(profile)
	return selector != nil && !selector.Empty() && selector.Matches(labels.Set(namespace))
}

// ProfileOf is the profile of a namespace with these labels; nil for one that belongs to none.
func (x *Index) ProfileOf(namespace map[string]string) *v1beta1.ResourceQuotaProfile {
	for i := range x.entries {
		if x.entries[i].selector.Matches(labels.Set(namespace)) {
			return x.entries[i].profile
		}
	}
	return nil
}

// assignNamespaces gives each namespace to its profile. conflicts lists for each profile, by name, the namespaces that it
// selects and an older profile has.
func (x *Index) assignNamespaces(namespaces []Namespace) (of map[string][]string, conflicts map[string][]Conflict) {
	of, conflicts = map[string][]string{}, map[string][]Conflict{}
	for _, n := range namespaces {
		owner := ""
		for i := range x.entries {
			if !x.entries[i].selector.Matches(labels.Set(n.Labels)) {
				continue
			}
			name := x.entries[i].profile.Name
			// The oldest profile comes first.
			if owner == "" {
				owner = name
				of[owner] = append(of[owner], n.Name)
				continue
			}
			conflicts[name] = append(conflicts[name], Conflict{Namespace: n.Name, Profile: owner})
		}
	}
	for name := range of {
		slices.Sort(of[name])
	}
	for name := range conflicts {
		slices.SortFunc(conflicts[name], func(a, b Conflict) int { return cmp.Compare(a.Namespace, b.Namespace) })
	}
	return of, conflicts
}

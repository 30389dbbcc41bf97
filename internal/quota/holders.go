package quota

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// sayHolders tells how many accelerators the team holds, and who does, by tier and by user: who holds the most comes first.
func (r *review) sayHolders() {
	namespaces := map[string]bool{}
	for _, n := range r.p.namespaces[r.profile.Name] {
		namespaces[n] = true
	}
	tiers, users := map[string]int64{}, map[string]int64{}
	all := int64(0)
	for _, h := range r.p.o.Holdings {
		if h.Profile == r.profile.Name || h.Profile == "" && namespaces[h.Namespace] {
			tiers[h.Tier] = plus(tiers[h.Tier], h.Accelerators)
			users[h.User] = plus(users[h.User], h.Accelerators)
			all = plus(all, h.Accelerators)
		}
	}
	r.st.Accelerators = r.accelerators(all)
	r.st.Tiers, r.st.Users = usage(tiers, v1alpha1.TiersLimit), usage(users, v1alpha1.UsersLimit)
}

func usage(of map[string]int64, most int) []v1alpha1.UsageStatus {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	var all []v1alpha1.UsageStatus
	for _, name := range names[:min(len(names), most)] {
		all = append(all, v1alpha1.UsageStatus{Name: name, Held: text.Thousandths(of[name])})
	}
	return all
}

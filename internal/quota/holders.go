package quota

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// sayHolders lists the accelerators that the team holds, by tier and by user, the largest amount first.
func (r *review) sayHolders() {
	namespaces := map[string]bool{}
	for _, n := range r.p.namespaces[r.profile.Name] {
		namespaces[n] = true
	}
	tiers, users := map[string]int64{}, map[string]int64{}
	all := int64(0)
	for _, h := range r.p.o.Holdings {
		if h.Profile == r.profile.Name || h.Profile == "" && namespaces[h.Namespace] {
			tiers[h.Tier] = addCapped(tiers[h.Tier], h.Accelerators)
			users[h.User] = addCapped(users[h.User], h.Accelerators)
			all = addCapped(all, h.Accelerators)
		}
	}
	r.st.Accelerators = r.acceleratorSummary(all)
	r.st.Tiers, r.st.Users = usageStatus(tiers, v1beta1.TiersLimit), usageStatus(users, v1beta1.UsersLimit)
}

func usageStatus(of map[string]int64, most int) []v1beta1.UsageStatus {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	var all []v1beta1.UsageStatus
	for _, name := range names[:min(len(names), most)] {
		all = append(all, v1beta1.UsageStatus{Name: name, Held: text.FormatThousandths(of[name])})
	}
	return all
}

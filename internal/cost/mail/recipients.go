package mail

import (
	"cmp"
	"slices"

	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// ResolveRecipients are who gets a report: its list, and, if personal, each of the users who are in it, and
// those who lead any of them. Missing are those users
// that the directory does not know, or has no address of; bad says which of the list are no addresses. All are in order, and
// none twice; addresses are in the form of [ParseAddress].
func ResolveRecipients(
	list []string, personal bool, users []string, d Directory,
) (all []delivery.Recipient, missing, bad []string) {
	for _, entry := range list {
		address, err := ParseAddress(entry)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		all = append(all, delivery.Recipient{Kind: ledger.DeliverReport, Address: address})
	}
	for _, user := range users {
		switch {
		case !personal || user == "": // pods without an owner have no page
		case d[user].Mail == "":
			missing = append(missing, user)
		default:
			all = append(all, delivery.Recipient{Kind: ledger.DeliverPersonal, User: user, Address: d[user].Mail})
		}
	}
	if personal {
		for _, leader := range d.leadersOf(users) {
			if d[leader].Mail == "" {
				missing = append(missing, leader)
				continue
			}
			all = append(all, delivery.Recipient{Kind: ledger.DeliverPeople, User: leader, Address: d[leader].Mail})
		}
	}
	slices.SortFunc(all, func(a, b delivery.Recipient) int {
		return cmp.Or(-cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.User, b.User), cmp.Compare(a.Address, b.Address))
	})
	slices.Sort(missing)
	return slices.Compact(all), slices.Compact(missing), bad
}

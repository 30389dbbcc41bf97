package mail

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// pageTo is a page for a user, to the address that ann and bob share.
func pageTo(user string) delivery.Recipient {
	return delivery.Recipient{Kind: ledger.DeliverPersonal, User: user, Address: ann}
}

func TestRecipients(t *testing.T) {
	g := NewWithT(t)
	d := Directory{"ann": {Mail: ann}, "bob": {Mail: ann}, "zoe": {}}
	all, missing, bad := ResolveRecipients([]string{zoe, "no\none", bob, zoe, "bob@EXAMPLE.com"}, true,
		[]string{"zoe", "bob", "", "eve", "ann", "eve", "ann"}, d)
	g.Expect(all).To(Equal([]delivery.Recipient{
		{Kind: ledger.DeliverReport, Address: bob}, {Kind: ledger.DeliverReport, Address: zoe}, pageTo("ann"), pageTo("bob"),
	}), "two users who share an address have a page each")
	g.Expect(missing).To(Equal([]string{"eve", "zoe"}))
	g.Expect(bad).To(HaveExactElements(HavePrefix(`"no one" is not an address`)))
	all, missing, _ = ResolveRecipients([]string{bob}, false, []string{"ann", "eve"}, d)
	g.Expect(all).To(HaveLen(1))
	g.Expect(missing).To(BeEmpty())
}

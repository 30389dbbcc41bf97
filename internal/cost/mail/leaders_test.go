package mail

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

func TestLeadersGetAPageOfTheirPeople(t *testing.T) {
	g := NewWithT(t)
	d := Directory{
		"ann@example.com": {Mail: ann, Leader: "bob"}, "bob": {Mail: bob, Leader: "zoe"}, "zoe": {Mail: zoe}, "eve": {Leader: "lost"},
		"lost": {}, "max": {Mail: ann, Leader: "idle"}, "idle": {Mail: ann},
	}
	people := func(user, address string) delivery.Recipient {
		return delivery.Recipient{Kind: ledger.DeliverPeople, User: user, Address: address}
	}
	all, missing, _ := ResolveRecipients(nil, true, []string{"ann@example.com", "eve", ""}, d)
	g.Expect(all).To(Equal([]delivery.Recipient{pageTo("ann@example.com"), people("bob", bob), people("zoe", zoe)}),
		"who leads a leader too, and nobody whose people used nothing")
	g.Expect(missing).To(Equal([]string{"eve", "lost"}))
	g.Expect(d.PeopleOf("bob")).To(Equal([]string{"ann@example.com"}))
	g.Expect(d.PeopleOf("zoe")).To(Equal([]string{"ann@example.com", "bob"}))
	g.Expect(d.PeopleOf("ann@example.com")).To(BeEmpty())
	g.Expect(d.PeopleByLeader()).To(Equal(map[string][]string{
		"bob": {"ann@example.com"}, "zoe": {"ann@example.com", "bob"}, "lost": {"eve"}, "idle": {"max"},
	}))
	all, _, _ = ResolveRecipients([]string{bob}, false, []string{"ann@example.com"}, d)
	g.Expect(all).To(HaveLen(1), "only where the report asks for personal pages")
}

func TestLeadersWhoCannotBeAny(t *testing.T) {
	g := NewWithT(t)
	d, bad, err := ParseDirectory([]byte(`
a: {leader: b}
b: {leader: c}
c: {leader: a}
me: {leader: me}
one: {leader: nobody}
two: {leader: one}
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bad).To(ContainElements(
		`user "a": leader "b" is led by that user, in the end: leave leader out of one of them`,
		`user "me": leader "me" is that user: name another, or leave leader out`,
		`user "one": leader "nobody" is not in the directory: add that user, or leave leader out`))
	g.Expect(d.PeopleOf("one")).To(Equal([]string{"two"}))
	g.Expect(d.PeopleOf("me")).To(BeEmpty())
	for _, user := range []string{"a", "b", "c"} {
		g.Expect(d.PeopleOf(user)).NotTo(ContainElement(user), "the circle is open now")
	}
}

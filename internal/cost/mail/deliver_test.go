package mail

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/test/testutil/post"
)

const (
	ann = "ann@example.com"
	bob = "bob@example.com"
	zoe = "zoe@example.com"
)

var once = map[string]int{ann: 1, bob: 1, zoe: 1}

func TestBehaviour4MailsArriveOnce(t *testing.T) {
	g := NewWithT(t)
	ctx, p, l := t.Context(), servePost(t, post.Options{}), newLedger(t, g)
	r := week(ann, bob, zoe)
	for range 3 {
		_, err := turn(ctx, l, l, serverOf(g, p), r, monday)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.Got()).To(Equal(once))
	}
	header, found, err := post.Parts(p.Mails(bob)[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(And(
		HaveKeyWithValue("text/plain", "Total ¥ 12.50\n.\nend"), HaveKeyWithValue("text/html", message(bob).HTML),
		HaveKeyWithValue("image/png", "\x89PNG\n\x1a\n\x00"), HaveKeyWithValue("text/csv", "user,cost\n'=1+1,12.50\n"),
		HaveKeyWithValue("<chart.png>chart.png", HavePrefix("image/png")), HaveKeyWithValue("report.csv", HavePrefix("text/csv"))))
	g.Expect(header.Get("Message-Id")).To(Equal("<" + message(bob).ID + "@example.com>"))
	g.Expect(header.Get("To")).To(Equal("<" + bob + ">"))
	g.Expect(header.Get("Auto-Submitted")).To(Equal("auto-generated"))
	g.Expect(header.Get("Date")).To(Equal("Mon, 23 Nov 2026 09:00:00 +0000"))
	g.Expect(header).NotTo(HaveKey("User-Agent"))

	r.Period, r.Next = r.Next, r.Next.AddDate(0, 0, 7)
	_, err = turn(ctx, l, l, serverOf(g, p), r, monday.AddDate(0, 0, 7))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Got()).To(Equal(map[string]int{ann: 2, bob: 2, zoe: 2}), "another week")
}

var errKilled = errors.New("killed")

// killed is a ledger whose operator is killed at a write, before it arrived or after.
type killed struct {
	*ledger.Ledger
	at, writes int
	arrives    bool
}

func (k *killed) ClaimDelivery(ctx context.Context, d ledger.Delivery, before time.Time) (claimed bool, err error) {
	return claimed, k.write(func() error {
		claimed, err = k.Ledger.ClaimDelivery(ctx, d, before)
		return err
	})
}

func (k *killed) MarkDelivery(ctx context.Context, d ledger.Delivery) error {
	return k.write(func() error { return k.Ledger.MarkDelivery(ctx, d) })
}

func (k *killed) write(do func() error) error {
	k.writes++
	if k.writes == k.at {
		if k.arrives {
			_ = do()
		}
		return errKilled
	}
	return do()
}

func TestBehaviour4KilledAtEveryWriteOfTheLedgerSendsNothingTwice(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	for _, arrives := range []bool{false, true} {
		for at := 1; ; at++ {
			p, r := servePost(t, post.Options{}), week(ann, bob, zoe)
			file := filepath.Join(t.TempDir(), "ledger.db")
			l := openLedger(t, g, file)
			k := &killed{Ledger: l, at: at, arrives: arrives}
			_, err := turn(ctx, l, k, serverOf(g, p), r, monday)
			if err == nil {
				g.Expect(k.writes).To(Equal(6), "a claim and a mark of each")
				break
			}
			g.Expect(err).To(MatchError(errKilled))
			g.Expect(l.Close()).To(Succeed())
			l = openLedger(t, g, file)
			var d *delivery.Decision
			for i := range 3 {
				d, err = turn(ctx, l, l, serverOf(g, p), r, monday.Add(time.Duration(i)*2*time.Hour))
				g.Expect(err).NotTo(HaveOccurred())
			}
			got, which := p.Got(), fmt.Sprintf("killed at write %d (arrived: %t)", at, arrives)
			for _, n := range got {
				g.Expect(n).To(Equal(1), which)
			}
			g.Expect(d.Sent+len(d.Unconfirmed)).To(Equal(3), which)
			// A claim that arrived without its mail is the one case in which a mail is missing, and it is in the list.
			g.Expect(3-len(got)).To(BeNumerically("<=", len(d.Unconfirmed)), which)
			if len(d.Unconfirmed) == 0 {
				g.Expect(got).To(Equal(once), which)
				continue
			}
			address := d.Unconfirmed[0].Address
			r.Again = monday.Add(6 * time.Hour)
			for i := range 3 {
				_, err = turn(ctx, l, l, serverOf(g, p), r, monday.Add(time.Duration(6+i)*time.Hour))
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(p.Got()).To(HaveKeyWithValue(address, got[address]+1), "%s: sent again once, because somebody wants it", which)
			g.Expect(states(t, g, l, r)).To(HaveEach(ledger.DeliverySent), which)
		}
	}
}

func TestBehaviour4OneBadAddressDoesNotStopTheRest(t *testing.T) {
	g := NewWithT(t)
	p, l, r := servePost(t, post.Options{}), newLedger(t, g), week(ann, bob, zoe)
	p.Refuse(map[string]post.Reply{
		ann: {Code: 550, Message: "no such user"},
		bob: {Code: 451, Message: "greylisted"},
	})
	for range 2 {
		_, err := turn(t.Context(), l, l, serverOf(g, p), r, monday)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(states(t, g, l, r)).To(Equal(map[string]ledger.DeliveryState{
			ann: ledger.DeliveryRefused, bob: ledger.DeliveryDeferred, zoe: ledger.DeliverySent,
		}))
	}
	p.Refuse(nil)
	d, err := turn(t.Context(), l, l, serverOf(g, p), r, monday.Add(59*time.Second))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Retry).To(Equal(monday.Add(time.Minute)))
	g.Expect(d.Waiting[0].Error).To(And(HavePrefix(ErrLater.Error()), ContainSubstring("greylisted")))
	g.Expect(d.Refused[0].Error).To(And(HavePrefix(ErrRefused.Error()), ContainSubstring("no such user")))
	_, err = turn(t.Context(), l, l, serverOf(g, p), r, d.Retry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Got()).To(Equal(map[string]int{bob: 1, zoe: 1}), "the refused address is not tried again")
}

func TestBehaviour4ServerThatIsDown(t *testing.T) {
	g := NewWithT(t)
	p, l, r := servePost(t, post.Options{}), newLedger(t, g), week(ann, bob, zoe)
	down, retries := serverOf(g, p, keyPort, "1"), []time.Duration{}
	for now := monday; now.Before(monday.Add(4 * time.Hour)); {
		_, err := turn(t.Context(), l, l, down, r, now)
		g.Expect(err).NotTo(HaveOccurred())
		d, err := turn(t.Context(), l, l, down, r, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Waiting).To(HaveLen(3), "no mail is tried while the server is down")
		g.Expect(d.Waiting[2].Error).To(And(HavePrefix(ErrUnreachable.Error()), ContainSubstring("127.0.0.1:1")))
		retries = append(retries, d.Retry.Sub(now))
		now = d.Retry
	}
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	g.Expect(retries[:8]).To(Equal([]time.Duration{
		minutes(1), minutes(2), minutes(4), minutes(8), minutes(16), minutes(32), minutes(60), minutes(60),
	}))
	_, err := turn(t.Context(), l, l, serverOf(g, p), r, monday.AddDate(0, 0, 6))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Got()).To(Equal(once), "within the period")
	d := delivery.Plan(week(ann), monday.AddDate(0, 0, 7))
	g.Expect(d.Send).To(BeEmpty(), "after it there is another report")
	g.Expect(d.Missed).To(HaveLen(1))
}

func TestBehaviour4ServerThatDoesNotAnswer(t *testing.T) {
	for _, taken := range []bool{false, true} {
		g := NewWithT(t)
		silent := make(chan struct{})
		t.Cleanup(func() { close(silent) })
		p, l, r := servePost(t, post.Options{Silent: silent, Taken: taken}), newLedger(t, g), week(ann, bob)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := turn(ctx, l, l, serverOf(g, p), r, monday)
		cancel()
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		g.Expect(states(t, g, l, r)).To(Equal(map[string]ledger.DeliveryState{ann: ledger.DeliverySending}))
		p.Answer()
		d, err := turn(t.Context(), l, l, serverOf(g, p), r, monday.Add(time.Hour))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Unconfirmed).To(HaveLen(1))
		g.Expect(d.Unconfirmed[0].Error).To(HavePrefix(ErrUnconfirmed.Error()))
		want := map[string]int{bob: 1}
		if taken {
			want[ann] = 1
		}
		g.Expect(p.Got()).To(Equal(want), "it has the whole mail; whether it accepted it is unknown")
	}
}

func TestBehaviour4ServerThatHangsUp(t *testing.T) {
	g := NewWithT(t)
	p, l, r := servePost(t, post.Options{HangsUp: true}), newLedger(t, g), week(ann, bob, zoe)
	_, err := turn(t.Context(), l, l, serverOf(g, p), r, monday)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(states(t, g, l, r)).To(Equal(map[string]ledger.DeliveryState{
		ann: ledger.DeliverySending, bob: ledger.DeliveryDeferred, zoe: ledger.DeliveryDeferred,
	}), "one mail is unconfirmed, not all of them")
	g.Expect(p.Got()).To(Equal(map[string]int{ann: 1}))
}

func TestBehaviour4TwoOperatorsAtOnceSendNothingTwice(t *testing.T) {
	g := NewWithT(t)
	p, l, r := servePost(t, post.Options{}), newLedger(t, g), week(ann, bob, zoe)
	plan := delivery.Plan(r, monday)
	for range 2 {
		g.Expect(Deliver(t.Context(), l, serverOf(g, p), plan, composeMessage, func() time.Time { return monday })).To(Succeed())
	}
	g.Expect(p.Got()).To(Equal(once))
}

func TestBehaviour4WhoMustActIsTold(t *testing.T) {
	g := NewWithT(t)
	for says, other := range map[string][]string{
		"does not accept the user or the password (535): correct keys username and password": {keyPassword, secret + "!"},
		"requires a user and a password (530): set keys username and password":               {keyUsername, "", keyPassword, ""},
		"the operator does not trust the certificate of":                                     {keyCA, ""},
		"does not begin with TLS: correct key tls or port":                                   {keyTLS, "TLS"},
	} {
		p, l, r := servePost(t, post.Options{}), newLedger(t, g), week(ann, bob)
		for range 2 {
			_, err := turn(t.Context(), l, l, serverOf(g, p, other...), r, monday)
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(p.Logins()).To(BeNumerically("<=", 1), "a server may lock out who comes with a wrong password again and again")
		g.Expect(states(t, g, l, r)).To(Equal(map[string]ledger.DeliveryState{ann: ledger.DeliveryHeld, bob: ledger.DeliveryHeld}))
		d, err := turn(t.Context(), l, l, serverOf(g, p), r, monday.Add(59*time.Minute))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Held).To(HaveLen(2))
		g.Expect(d.Held[1].Error).To(And(HavePrefix(ErrSettings.Error()), ContainSubstring(says)))
		g.Expect(d.Retry).To(Equal(monday.Add(time.Hour)))
		_, err = turn(t.Context(), l, l, serverOf(g, p), r, d.Retry)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(states(t, g, l, r)).To(HaveEach(ledger.DeliverySent))
	}
}

func TestServersDiffer(t *testing.T) {
	g := NewWithT(t)
	for says, c := range map[string]struct {
		options post.Options
		refuse  map[string]post.Reply
	}{
		"offers no STARTTLS": {post.Options{Plain: true}, nil},
		"the server rejects": {post.Options{}, map[string]post.Reply{"": {Code: 552, Message: "too large"}}},
	} {
		p := servePost(t, c.options)
		p.Refuse(c.refuse)
		g.Expect(Send(t.Context(), serverOf(g, p), message(ann))).To(MatchError(ContainSubstring(says)))
		g.Expect(p.Got()).To(BeEmpty())
	}
	p := servePost(t, post.Options{Implicit: true})
	g.Expect(Send(t.Context(), serverOf(g, p, keyTLS, "TLS"), message(ann))).To(Succeed())
	g.Expect(p.Got()).To(HaveLen(1))
	p = servePost(t, post.Options{Open: true})
	g.Expect(Send(t.Context(), serverOf(g, p, keyTLS, "None", keyUsername, "", keyPassword, ""), message(ann))).To(Succeed())
	p = servePost(t, post.Options{Mechanisms: []string{"XOAUTH2"}})
	g.Expect(Send(t.Context(), serverOf(g, p), message(ann))).To(And(
		MatchError(ErrSettings), MatchError(ContainSubstring("offers none of SCRAM, PLAIN and LOGIN"))))

	p = servePost(t, post.Options{})
	m := message(ann)
	m.From = "somebody@example.com"
	g.Expect(Send(t.Context(), serverOf(g, p), m)).To(And(MatchError(ErrSettings), MatchError(ContainSubstring("not yours"))))
}

func TestNothingBecomesAnotherHeaderOrCommand(t *testing.T) {
	g := NewWithT(t)
	p := servePost(t, post.Options{})
	for _, change := range []func(*Message){
		func(m *Message) { m.Subject = "a\r\nBcc: eve@example.com" },
		func(m *Message) { m.Subject = "" },
		func(m *Message) { m.To = "ann@example.com>\r\nRCPT TO:<eve@example.com" },
		func(m *Message) { m.To = "ann@example.com, eve@example.com" },
		func(m *Message) { m.From = "a\n@example.com" },
		func(m *Message) { m.ID = "a>\r\nBcc: eve@example.com" },
		func(m *Message) { m.Pictures[0].Name = "a>\r\nX: y" },
		func(m *Message) { m.Attachments[0].Name = "../a\"; x=\"" },
		func(m *Message) { m.Attachments[0].Type = "text/csv\r\nX: y" },
	} {
		m := message(ann)
		change(&m)
		g.Expect(Send(t.Context(), serverOf(g, p), m)).To(Or(MatchError(ErrRefused), MatchError(ErrSettings)), "%+v", m)
	}
	g.Expect(p.Got()).To(BeEmpty())
	ids := map[string]bool{}
	for _, r := range []delivery.Recipient{
		{Kind: ledger.DeliverReport, Address: ann}, pageTo(""), {Kind: ledger.DeliverReport, User: ann},
	} {
		for revision := range 2 {
			ids[MessageID("uid", monday, revision, r)] = true
			ids[MessageID("uid", monday.AddDate(0, 0, 7), revision, r)] = true
		}
	}
	g.Expect(maps.Collect(maps.All(ids))).To(HaveLen(12))
}

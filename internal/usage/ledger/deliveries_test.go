package ledger

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// delivery is a mail of the report of the week that ended on the 16th.
func delivery(address string, with ...func(*Delivery)) Delivery {
	d := Delivery{
		Report: "report", Period: at("16 00:00:00"), Kind: DeliverReport, Address: address, State: DeliverySending,
		At: at("16 09:00:00"), Tries: 1,
	}
	for _, f := range with {
		f(&d)
	}
	return d
}

func TestMailsAreClaimedOnce(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx, never := t.Context(), time.Time{}
		a := delivery("a@example.com")
		g.Expect(l.ClaimDelivery(ctx, a, never)).To(BeTrue())
		g.Expect(l.ClaimDelivery(ctx, a, never)).To(BeFalse(), "it is being sent, or uncertain")
		g.Expect(l.ClaimDelivery(ctx, a, a.At)).To(BeFalse(), "begun at that time, not before")
		for _, other := range []Delivery{
			delivery("a@example.com", func(d *Delivery) { d.Report = "other" }),
			delivery("a@example.com", func(d *Delivery) { d.Period = at("23 00:00:00") }),
			delivery("a@example.com", func(d *Delivery) { d.Kind, d.User = DeliverPersonal, "alice" }),
			delivery("a@example.com", func(d *Delivery) { d.Kind, d.User = DeliverPersonal, "\x00"+strings.Repeat("b", 20_000) }),
		} {
			g.Expect(l.ClaimDelivery(ctx, other, never)).To(BeTrue(), "another mail")
		}

		for _, open := range []DeliveryState{DeliveryDeferred, DeliveryHeld} {
			a.State, a.Error = open, "no\x00 answer"
			g.Expect(l.MarkDelivery(ctx, a)).To(Succeed())
			a.Tries++
			a.At = a.At.Add(time.Minute)
			g.Expect(l.ClaimDelivery(ctx, a, never)).To(BeTrue(), "tried again")
		}
		g.Expect(l.ClaimDelivery(ctx, a, a.At.Add(time.Second))).To(BeTrue(), "somebody wants it sent again")
		for _, done := range []DeliveryState{DeliverySent, DeliveryRefused} {
			d := delivery(string(done) + "@example.com")
			g.Expect(l.ClaimDelivery(ctx, d, never)).To(BeTrue())
			d.State = done
			g.Expect(l.MarkDelivery(ctx, d)).To(Succeed())
			g.Expect(l.ClaimDelivery(ctx, d, d.At.Add(time.Hour))).To(BeFalse(), "done")
			d.State = DeliveryDeferred
			g.Expect(l.MarkDelivery(ctx, d)).To(Succeed())
			g.Expect(l.ClaimDelivery(ctx, d, never)).To(BeFalse(), "what is done stays done")
		}
		a.State, a.Error = DeliverySending, ""
		g.Expect(l.QueryDeliveries(ctx, "report", a.Period)).To(And(HaveLen(5), HaveExactElements(
			HaveField("User", "alice"), HaveField("User", HavePrefix("\uFFFDb")), HaveField("State", DeliveryRefused),
			HaveField("State", DeliverySent), a)))

		for _, d := range []Delivery{{}, delivery(""), delivery("a", func(d *Delivery) { d.At = never })} {
			_, err := l.ClaimDelivery(ctx, d, never)
			g.Expect(err).To(MatchError(ErrInvalid))
			g.Expect(l.MarkDelivery(ctx, d)).To(MatchError(ErrInvalid))
		}
	})
}

func TestMailsOfTheLastPeriodAreNotPruned(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx, periods := t.Context(), []string{"02 00:00:00", "09 00:00:00", "16 00:00:00"}
		for _, period := range periods {
			claimed, err := l.ClaimDelivery(ctx, delivery("a@example.com", func(d *Delivery) { d.Period = at(period) }), time.Time{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(claimed).To(BeTrue())
		}
		for _, c := range []struct {
			before string
			pruned int
		}{{"05 00:00:00", 1}, {"30 00:00:00", 1}} {
			g.Expect(l.PruneBefore(ctx, at(c.before))).To(BeEquivalentTo(c.pruned))
		}
		g.Expect(l.QueryDeliveries(ctx, "report", at("09 00:00:00"))).To(BeEmpty())
		g.Expect(l.QueryDeliveries(ctx, "report", at("16 00:00:00"))).To(HaveLen(1))
	})
}

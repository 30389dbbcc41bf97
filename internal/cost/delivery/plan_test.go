package delivery

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const ann = "ann@example.com"

var monday = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// week is the round of a week's report.
func week() Round {
	return Round{Report: "uid", Period: monday.Add(-9 * time.Hour), Next: monday.AddDate(0, 0, 7), Retry: time.Minute}
}

func page(user, address string) Recipient { return Recipient{ledger.DeliverPersonal, user, address} }

// delivered is a delivery of the week to a recipient, at a time after Monday, 9:00.
func delivered(to Recipient, state ledger.DeliveryState, after time.Duration, tries int) ledger.Delivery {
	return ledger.Delivery{
		Report: "uid", Period: week().Period, Kind: to.Kind, User: to.User, Address: to.Address, State: state, At: monday.Add(after),
		Tries: tries,
	}
}

func TestPlan(t *testing.T) {
	to := page("ann", ann)
	for name, c := range map[string]struct {
		// before is the delivery that there is; nil for none.
		before *ledger.Delivery
		again  time.Duration
		// send says that it is sent, at an hour after Monday, 9:00.
		send bool
		says string
	}{
		"nothing yet":                      {nil, 0, true, "1 to be sent"},
		"sent":                             {new(delivered(to, ledger.DeliverySent, 0, 1)), 0, false, "1 sent"},
		"sent, and wanted again":           {new(delivered(to, ledger.DeliverySent, 0, 1)), time.Minute, false, "1 sent"},
		"refused":                          {new(delivered(to, ledger.DeliveryRefused, 0, 1)), time.Minute, false, "1 refused"},
		"unconfirmed":                      {new(delivered(to, ledger.DeliverySending, 0, 1)), 0, false, "1 unconfirmed"},
		"unconfirmed, and wanted again":    {new(delivered(to, ledger.DeliverySending, 0, 1)), time.Minute, true, "1 to be sent"},
		"wanted again before it was begun": {new(delivered(to, ledger.DeliverySending, time.Minute, 1)), 1, false, "1 unconfirmed"},
		"wanted again at a time to come":   {new(delivered(to, ledger.DeliverySending, 0, 1)), 2 * time.Hour, false, "1 unconfirmed"},
		"deferred, due":                    {new(delivered(to, ledger.DeliveryDeferred, 0, 50)), 0, true, "1 to be sent"},
		"deferred":                         {new(delivered(to, ledger.DeliveryDeferred, 58*time.Minute, 3)), 0, false, "1 tried again"},
		"held":                             {new(delivered(to, ledger.DeliveryHeld, 1, 1)), 0, false, "1 held"},
		"sent to another address": {
			new(delivered(page("ann", "old@example.com"), ledger.DeliverySent, 0, 1)), 0, false, "1 sent"},
		"unconfirmed at another address": {
			new(delivered(page("ann", "old@example.com"), ledger.DeliverySending, 0, 1)), 0, false, "1 unconfirmed"},
		"refused at another address": {
			new(delivered(page("ann", "old@example.com"), ledger.DeliveryRefused, 0, 1)), 0, true, "1 to be sent"},
		"sent to another user at the same address": {
			new(delivered(page("bob", ann), ledger.DeliverySent, 0, 1)), 0, true, "1 to be sent"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, now := week(), monday.Add(time.Hour)
			r.Recipients = []Recipient{to}
			if c.before != nil {
				r.Deliveries = []ledger.Delivery{*c.before}
			}
			if c.again > 0 {
				r.Again = monday.Add(c.again)
			}
			d := Plan(r, now)
			g.Expect(strings.TrimPrefix(d.String(), "0 sent, ")).To(Equal(c.says))
			if c.send {
				g.Expect(d.Send).To(HaveExactElements(And(
					HaveField("State", ledger.DeliverySending), HaveField("At", now), HaveField("Address", ann),
					HaveField("Tries", BeNumerically(">", 0)), HaveField("Period", r.Period), HaveField("Report", "uid"))))
			}
			if c.send {
				g.Expect(r.IsSettled()).To(BeFalse())
			}
			if strings.HasSuffix(c.says, "sent") && !c.send || strings.HasSuffix(c.says, "refused") {
				g.Expect(r.IsSettled()).To(BeTrue())
			}
			r.Next = now
			g.Expect(Plan(r, now).Send).To(BeEmpty(), "the next report is due")
			g.Expect(Plan(r, now).Retry).To(BeZero())
		})
	}
}

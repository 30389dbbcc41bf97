// Package delivery plans who gets the mails of a report, and when: each once, and again only what was not taken. It is pure: it
// is told what the ledger has of them, and the time.
package delivery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const (
	// lastRetry is the longest wait after a mail was not taken.
	lastRetry = time.Hour
	// doublings are more than it takes from the first to the last.
	doublings = 12
)

// Recipient gets one mail about a period.
type Recipient struct {
	Kind ledger.DeliveryKind
	// User whose page it is; empty for the report.
	User string
	// Address that it goes to.
	Address string
}

// Round is what a plan is made for.
type Round struct {
	// Report is the UID of the report.
	Report string
	// Period is when the period ended, Next when the report of the next one is due: then nobody waits for this one any more. The
	// zero time is for never.
	Period, Next time.Time
	// Recipients of it.
	Recipients []Recipient
	// Deliveries of it so far.
	Deliveries []ledger.Delivery
	// Again is when somebody wanted those mails to be sent again of which nobody knew by then whether they had arrived; the zero
	// time for never. A time to come counts once it has come: until then there would be no end of sending again.
	Again time.Time
	// Retry is the first wait after a mail was not taken. It doubles, up to an hour.
	Retry time.Duration
}

// Decision is what is to be done about the mails of a period.
type Decision struct {
	// Send are the mails to be sent now, as they are claimed; Again is that of the round, or zero if it does not count yet.
	Send  []ledger.Delivery
	Again time.Time
	// Retry is when to look again; the zero time for when something else changes.
	Retry time.Time
	// Sent is how many recipients have theirs.
	Sent int
	// Waiting are mails that are tried again, Held those before which somebody must act, Refused those that are not tried again,
	// Unconfirmed those of which nobody knows whether they arrived, and Missed those for which it is too late.
	Waiting, Held, Refused, Unconfirmed, Missed []ledger.Delivery
}

// NotSent names who will not get their mail, or may not have got it, and why.
func (d *Decision) NotSent() []string {
	var names []string
	for _, of := range []struct {
		deliveries []ledger.Delivery
		why        string
	}{{d.Refused, "refused"}, {d.Unconfirmed, "unconfirmed"}, {d.Missed, "too late"}} {
		for i := range of.deliveries {
			names = append(names, fmt.Sprintf("%s (%s)", of.deliveries[i].Address, of.why))
		}
	}
	return names
}

// String says how far it is, in words for users.
func (d *Decision) String() string {
	said := []string{fmt.Sprintf("%d sent", d.Sent)}
	for _, more := range []struct {
		name string
		n    int
	}{
		{"to be sent", len(d.Send)}, {"tried again", len(d.Waiting)}, {"held", len(d.Held)}, {"refused", len(d.Refused)},
		{"unconfirmed", len(d.Unconfirmed)}, {"missed", len(d.Missed)},
	} {
		if more.n > 0 {
			said = append(said, fmt.Sprintf("%d %s", more.n, more.name))
		}
	}
	return strings.Join(said, ", ")
}

// Plan decides what is sent now, and what later. It is asked when no mail of the report is on its way, so one that is being sent
// was left so by an operator that ended, or by a server that did not answer: it may have arrived, and is not sent again, unless
// somebody wants it.
func Plan(r Round, now time.Time) *Decision {
	if r.Again.After(now) {
		r.Again = time.Time{}
	}
	d := &Decision{Again: r.Again}
	late := !r.Next.IsZero() && !now.Before(r.Next)
	for _, delivery := range r.currentDeliveries() {
		d.sortDelivery(r, delivery, late, now)
	}
	return d
}

// currentDeliveries is the delivery of each recipient, also of those for whom none was begun.
func (r Round) currentDeliveries() []ledger.Delivery {
	known := make(map[Recipient]ledger.Delivery, len(r.Deliveries))
	paged := map[string]ledger.Delivery{} // of users who have their page, or may have it, whatever their address was
	for _, delivery := range r.Deliveries {
		known[Recipient{delivery.Kind, delivery.User, delivery.Address}] = delivery
		if delivery.Kind == ledger.DeliverPersonal && !r.mayBegin(delivery) && delivery.State != ledger.DeliveryRefused {
			paged[delivery.User] = delivery
		}
	}
	all := make([]ledger.Delivery, 0, len(r.Recipients))
	for _, to := range r.Recipients {
		delivery, begun := known[to]
		if !begun && to.Kind == ledger.DeliverPersonal {
			delivery, begun = paged[to.User]
		}
		if !begun {
			delivery = ledger.Delivery{
				Report: r.Report, Period: r.Period, Kind: to.Kind, User: to.User, Address: to.Address, At: r.Period,
				State: ledger.DeliveryDeferred,
			}
		}
		all = append(all, delivery)
	}
	return all
}

// Settled tells whether no mail is to be sent any more, now or later, unless the round changes.
func (r Round) Settled() bool { return !slices.ContainsFunc(r.currentDeliveries(), r.mayBegin) }

// mayBegin tells of a delivery that may be begun.
func (r Round) mayBegin(d ledger.Delivery) bool {
	switch d.State {
	case ledger.DeliverySent, ledger.DeliveryRefused:
		return false
	case ledger.DeliverySending:
		return d.At.Before(r.Again)
	default:
		return true
	}
}

// sortDelivery puts a delivery where it belongs.
func (d *Decision) sortDelivery(r Round, delivery ledger.Delivery, late bool, now time.Time) {
	due := delivery.At.Add(r.backOff(delivery))
	switch {
	case delivery.State == ledger.DeliverySent:
		d.Sent++
	case delivery.State == ledger.DeliveryRefused:
		d.Refused = append(d.Refused, delivery)
	case !r.mayBegin(delivery):
		d.Unconfirmed = append(d.Unconfirmed, delivery)
	case late:
		d.Missed = append(d.Missed, delivery)
	case !now.Before(due):
		delivery.State, delivery.At, delivery.Error = ledger.DeliverySending, now, ""
		delivery.Tries++
		d.Send = append(d.Send, delivery)
	default:
		if delivery.State == ledger.DeliveryHeld {
			d.Held = append(d.Held, delivery)
		} else {
			d.Waiting = append(d.Waiting, delivery)
		}
		if d.Retry.IsZero() || due.Before(d.Retry) {
			d.Retry = due
		}
	}
}

// backOff is how long a delivery waits after its last try. One before which somebody must act waits the longest: a server may
// lock out who comes with a wrong password again and again.
func (r Round) backOff(d ledger.Delivery) time.Duration {
	switch {
	case d.Tries == 0 || d.State == ledger.DeliverySending:
		return 0
	case d.State == ledger.DeliveryHeld:
		return lastRetry
	}
	return min(r.Retry<<min(d.Tries-1, doublings), lastRetry)
}

// Package delivery plans which mails of a report are sent now and which later. It is pure: its input is the ledger's record
// and the time.
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
	// Period is when the period ended. Next is when the report of the next period is due; after that this one is not sent any
	// more. The zero time is for never.
	Period, Next time.Time
	// Recipients of it.
	Recipients []Recipient
	// Deliveries of it so far.
	Deliveries []ledger.Delivery
	// Again is when a user asked to send mails again whose arrival was unknown by then; zero for never. A time in the future
	// counts only once it has come. Otherwise each uncertain mail until then would be sent again and again.
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
	// Waiting are mails that are tried again. Held wait until a person corrects the settings. Refused are not tried again.
	// Unconfirmed may have arrived or not. Missed are too late.
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

// Plan decides which mails are sent now and which later. It must be called while no mail of the report is being sent. So a
// delivery that is recorded as being sent was left by an operator that ended, or by a server that did not answer. The mail
// may have arrived: it is not sent again unless a user asks for it, because no mail of a period may arrive twice.
func Plan(r Round, now time.Time) *Decision {
	// A request for the future would allow each uncertain mail to be sent again at every try until then.
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

// paged is a page of a user, or of the people of one.
type paged struct {
	kind ledger.DeliveryKind
	user string
}

// currentDeliveries returns the delivery of each recipient, including recipients whose delivery has not begun.
func (r Round) currentDeliveries() []ledger.Delivery {
	known := make(map[Recipient]ledger.Delivery, len(r.Deliveries))
	had := map[paged]ledger.Delivery{} // of users who have their page, or may have it, whatever their address was
	for _, delivery := range r.Deliveries {
		known[Recipient{delivery.Kind, delivery.User, delivery.Address}] = delivery
		if delivery.Kind != ledger.DeliverReport && !r.mayBegin(delivery) && delivery.State != ledger.DeliveryRefused {
			had[paged{delivery.Kind, delivery.User}] = delivery
		}
	}
	all := make([]ledger.Delivery, 0, len(r.Recipients))
	for _, to := range r.Recipients {
		delivery, begun := known[to]
		// A user whose address changed in the directory already has this period's page under the old one.
		if !begun && to.Kind != ledger.DeliverReport {
			delivery, begun = had[paged{to.Kind, to.User}]
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

// IsSettled tells whether no mail is to be sent any more, now or later, unless the round changes.
func (r Round) IsSettled() bool { return !slices.ContainsFunc(r.currentDeliveries(), r.mayBegin) }

// mayBegin tells whether a delivery may begin.
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

// sortDelivery puts a delivery into the list of the decision that fits its state.
func (d *Decision) sortDelivery(r Round, delivery ledger.Delivery, late bool, now time.Time) {
	due := delivery.At.Add(r.backOff(delivery))
	switch {
	case delivery.State == ledger.DeliverySent:
		d.Sent++
	case delivery.State == ledger.DeliveryRefused:
		d.Refused = append(d.Refused, delivery)
	case !r.mayBegin(delivery):
		d.Unconfirmed = append(d.Unconfirmed, delivery)
	// Once the next report is due, an old one would only confuse its readers.
	case late:
		d.Missed = append(d.Missed, delivery)
	// The state goes into the ledger before the mail goes out: an operator that is killed in between leaves an uncertain mail,
	// and not a second one.
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

// backOff is how long a delivery waits after its last try. A delivery that waits for a person waits longest: a server may
// lock out a client that keeps sending a wrong password.
func (r Round) backOff(d ledger.Delivery) time.Duration {
	switch {
	case d.Tries == 0 || d.State == ledger.DeliverySending:
		return 0
	case d.State == ledger.DeliveryHeld:
		return lastRetry
	}
	return min(r.Retry<<min(d.Tries-1, doublings), lastRetry)
}

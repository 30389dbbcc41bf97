package ledger

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"
)

// DeliveryKind is what is mailed.
type DeliveryKind string

const (
	// DeliverReport: the report, to an address of its list.
	DeliverReport DeliveryKind = "report"
	// DeliverPersonal: one user's own page, to that user.
	DeliverPersonal DeliveryKind = "personal"
	// DeliverPeople: the page of the people whom a user leads, to that user.
	DeliverPeople DeliveryKind = "people"
)

// DeliveryState is the state of a mail.
type DeliveryState string

const (
	// DeliverySending: it was begun. If it stays in this state, its arrival is uncertain.
	DeliverySending DeliveryState = "Sending"
	// DeliverySent: the server has accepted it.
	DeliverySent DeliveryState = "Sent"
	// DeliveryRefused: the server will never accept it.
	DeliveryRefused DeliveryState = "Refused"
	// DeliveryDeferred: it was not sent, and is tried again.
	DeliveryDeferred DeliveryState = "Deferred"
	// DeliveryHeld: it was not sent, and cannot be until a person corrects a setting.
	DeliveryHeld DeliveryState = "Held"
)

// Delivery is a mail to a recipient about a period of a report. There is one of each.
type Delivery struct {
	// Report is the UID of the report.
	Report string
	// Period is when the period ended. It counts in whole seconds.
	Period time.Time
	Kind   DeliveryKind
	// User whose page it is; empty for the report.
	User string
	// Address that it goes to.
	Address string
	State   DeliveryState
	// At is when it came to that state. It counts in microseconds.
	At time.Time
	// Tries is how often it was begun.
	Tries int
	// Error is why it was not sent, or may not have been, in words for users; empty for none.
	Error string
}

// key tells deliveries apart. Names may be longer than what PostgreSQL indexes.
func (d *Delivery) key() string {
	return digest(cleanText(d.Report), strconv.FormatInt(d.Period.Unix(), 10), cleanText(string(d.Kind)), cleanText(d.User),
		cleanText(d.Address))
}

func (d *Delivery) check() error {
	switch {
	case d.Report == "" || d.Address == "":
		return problemf(ErrInvalid, "a delivery needs the UID of its report and an address")
	case d.Period.Before(earliest) || d.At.Before(earliest):
		return problemf(ErrInvalid, "a delivery of report %q is of the year %d, or was made in the year %d", d.Report, d.Period.Year(),
			d.At.Year())
	}
	return nil
}

// ClaimDelivery records that a mail is being sent, and reports whether the caller may send it: false if it was sent, was
// refused, or was begun before. A mail that was begun before the given time is claimed again; zero for none.
func (l *Ledger) ClaimDelivery(ctx context.Context, d Delivery, begunBefore time.Time) (bool, error) {
	const doing = "claim a mail in the ledger"
	if err := d.check(); err != nil {
		return false, l.explainFailure(ctx, doing, err)
	}
	claimed := false
	err := l.writeTransaction(ctx, doing, func(ctx context.Context, tx transaction) error {
		result, err := tx.ExecContext(ctx, `INSERT INTO delivery
				(digest, report, period_end, kind, user_name, address, state, at, tries, error) `+rowParameters(1, 10)+`
			ON CONFLICT (digest) DO UPDATE SET state = excluded.state, at = excluded.at, tries = excluded.tries, error = excluded.error
			WHERE delivery.state IN ('Deferred', 'Held') OR (delivery.state = 'Sending' AND delivery.at < $11)`,
			d.key(), cleanText(d.Report), d.Period.Unix(), cleanText(string(d.Kind)), cleanText(d.User), cleanText(d.Address),
			string(DeliverySending),
			d.At.UnixMicro(), d.Tries, "", max(begunBefore.UnixMicro(), 0))
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		claimed = n == 1
		return err
	})
	return claimed && err == nil, err
}

// MarkDelivery records what became of a mail that was claimed. Of another one it changes nothing: what was sent stays sent.
func (l *Ledger) MarkDelivery(ctx context.Context, d Delivery) error {
	const doing = "record in the ledger what became of a mail"
	if err := d.check(); err != nil {
		return l.explainFailure(ctx, doing, err)
	}
	return l.writeTransaction(ctx, doing, func(ctx context.Context, tx transaction) error {
		_, err := tx.ExecContext(ctx, "UPDATE delivery SET state = $1, at = $2, tries = $3, error = $4 "+
			"WHERE digest = $5 AND state = 'Sending'",
			string(d.State), d.At.UnixMicro(), d.Tries, cleanText(d.Error), d.key())
		return err
	})
}

// QueryDeliveries are those of a period of a report, by kind, user and address.
func (l *Ledger) QueryDeliveries(ctx context.Context, report string, period time.Time) ([]Delivery, error) {
	var found []Delivery
	err := l.readTransaction(ctx, "read mails from the ledger", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, `SELECT report, period_end, kind, user_name, address, state, at, tries, error FROM delivery
			WHERE report = $1 AND period_end = $2`, []any{cleanText(report), period.Unix()},
			func(scan func(...any) error) error {
				var d Delivery
				var end, at int64
				err := scan(&d.Report, &end, &d.Kind, &d.User, &d.Address, &d.State, &at, &d.Tries, &d.Error)
				d.Period, d.At = time.Unix(end, 0).UTC(), time.UnixMicro(at).UTC()
				found = append(found, d)
				return err
			})
	})
	slices.SortFunc(found, func(a, b Delivery) int { // databases have orders of their own
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.User, b.User), cmp.Compare(a.Address, b.Address))
	})
	return found, err
}

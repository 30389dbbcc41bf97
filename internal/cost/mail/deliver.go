package mail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// markTimeout bounds what is recorded of a mail, also by an operator that ends.
const markTimeout = 5 * time.Second

// Ledger is what keeps a mail from being sent twice: a [ledger.Ledger].
type Ledger interface {
	ClaimDelivery(ctx context.Context, d ledger.Delivery, begunBefore time.Time) (bool, error)
	MarkDelivery(ctx context.Context, d ledger.Delivery) error
}

// Deliver sends the mails of a plan one after the other. compose makes the message of a delivery. A mail that fails does
// not stop the others, unless the server accepts none. It returns an error if the ledger accepts no entries, or the context
// ends; the ledger then has what was sent.
func Deliver(
	ctx context.Context, l Ledger, to Server, plan *delivery.Decision, compose func(ledger.Delivery) (Message, error),
	now func() time.Time,
) error {
	var down error
	for _, d := range plan.Send {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.At = now()
		claimed, err := l.ClaimDelivery(ctx, d, plan.Again)
		if err != nil {
			return err
		}
		if !claimed {
			continue
		}
		err = down
		if err == nil {
			err = deliverOne(ctx, to, d, compose)
		}
		d.State, d.At = StateOf(err), now()
		if err != nil {
			d.Error = err.Error()
		}
		if errors.Is(err, ErrUnconfirmed) {
			down = fmt.Errorf("%w: it did not answer another mail", ErrUnreachable)
		} else if errors.Is(err, ErrUnreachable) || errors.Is(err, ErrSettings) {
			down = err
		}
		if err := markDelivery(ctx, l, d); err != nil {
			return err
		}
	}
	return nil
}

func deliverOne(ctx context.Context, to Server, d ledger.Delivery, compose func(ledger.Delivery) (Message, error)) error {
	ctx, cancel := context.WithTimeout(ctx, to.Timeout)
	defer cancel()
	m, err := compose(d)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLater, err)
	}
	return Send(ctx, to, m)
}

// markDelivery records what became of a mail, also when the context has ended meanwhile.
func markDelivery(ctx context.Context, l Ledger, d ledger.Delivery) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	return l.MarkDelivery(ctx, d)
}

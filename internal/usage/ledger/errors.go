package ledger

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrUnavailable is for a database that cannot be reached, is locked, full or failing, or did not answer in time. A later
	// try may succeed. Nothing was recorded, or entries that were count once when they are recorded again.
	ErrUnavailable = errors.New("the ledger is not available")
	// ErrUnusable is for a database that is broken, or has another version of the ledger. It stays so until an administrator
	// replaces it.
	ErrUnusable = errors.New("the ledger cannot be used")
	// ErrBehind is for a database that is read, and that the leading operator has not made or brought up to date yet. It is
	// ErrUnavailable as well.
	ErrBehind = errors.New("the ledger is not ready to be read")
	// ErrInvalid is for entries and queries that no database would accept: an error of the caller.
	ErrInvalid = errors.New("the ledger cannot store this")
)

// ErrNotEmpty is for a restore into a ledger that has entries.
var ErrNotEmpty = &problem{said: "the ledger has entries already, which the backup would replace"}

// problem is an error in words for users. It wraps one of the sentinel errors or none, and that of a context if there is one,
// never an error of a driver: those may quote what they were given, passwords too.
type problem struct {
	said  string
	wraps []error
}

func (p *problem) Error() string { return p.said }

func (p *problem) Unwrap() []error { return p.wraps }

func problemf(kind error, format string, args ...any) error {
	return &problem{kind.Error() + ": " + fmt.Sprintf(format, args...), []error{kind}}
}

// behindf is an ErrBehind. Format says in which state the database is.
func behindf(format string, args ...any) error {
	return &problem{
		ErrBehind.Error() + ": " + fmt.Sprintf(format, args...) + ": the operator that leads mends that when it starts; ask again then",
		[]error{ErrBehind, ErrUnavailable},
	}
}

// writeError is an error of the writer that receives an export.
type writeError struct{ error }

// explainFailure says what came of doing something with the database. A context that was cancelled is no fault of the database's.
func (l *Ledger) explainFailure(ctx context.Context, doing string, err error) error {
	return explainError(ctx, l.kind, doing, err)
}

func explainError(ctx context.Context, in database, doing string, err error) error {
	var own *problem
	var write writeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return fmt.Errorf("%s: %w", doing, own)
	case errors.As(err, &write):
		return fmt.Errorf("%s: %w", doing, write.error)
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return &problem{fmt.Sprintf("%s: %s: %s did not answer in time: see whether it is up, and who locks it; it is tried again",
			doing, ErrUnavailable, in.name), []error{ErrUnavailable, context.DeadlineExceeded}}
	}
	if in.explain == nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	said, kind := in.explain(err)
	if kind == nil {
		return &problem{said: fmt.Sprintf("%s: %s: %s", doing, in.name, said)}
	}
	return &problem{fmt.Sprintf("%s: %s: %s: %s", doing, kind, in.name, said), []error{kind}}
}

package ledger

import (
	"context"
	"time"
)

// FreeRoom is how much was free at a time.
type FreeRoom struct {
	// At counts in whole seconds.
	At time.Time
	// Free are accelerators that were free, and Unusable is the expected share of them, from 0 to 1, that a gang like those that
	// there were could not use.
	Free, Unusable float64
	// Gangs is of how many gangs the share was made; 0 if there were none, and the share says nothing.
	Gangs int64
}

func (r *FreeRoom) check() error {
	// Written so that what is not a number is refused too.
	if sound := r.Free >= 0 && r.Unusable >= 0 && r.Unusable <= 1 && r.Gangs >= 0; !sound || r.At.Before(earliest) {
		return problemf(ErrInvalid, "at %s %g accelerators were free, and %g of them of no use to %d gangs", r.At.Format(time.RFC3339),
			r.Free, r.Unusable, r.Gangs)
	}
	return nil
}

func recordRooms(ctx context.Context, tx transaction, rooms []FreeRoom) error {
	rows := make([][]any, len(rooms))
	for i, r := range rooms {
		rows[i] = []any{r.At.Unix(), r.Free, r.Unusable, r.Gangs}
	}
	return tx.insertRows(ctx, "INSERT INTO room (at, free, unusable, gangs)", rows, " ON CONFLICT (at) DO NOTHING")
}

// QueryRooms are those in a range of time, to excluded, in their order.
func (l *Ledger) QueryRooms(ctx context.Context, from, to time.Time) ([]FreeRoom, error) {
	var rooms []FreeRoom
	err := l.readTransaction(ctx, "read from the ledger how much was free", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, "SELECT at, free, unusable, gangs FROM room WHERE at >= $1 AND at < $2 ORDER BY at",
			[]any{from.Unix(), to.Unix()}, func(scan func(...any) error) error {
				var r FreeRoom
				var at int64
				err := scan(&at, &r.Free, &r.Unusable, &r.Gangs)
				r.At = time.Unix(at, 0).UTC()
				rooms = append(rooms, r)
				return err
			})
	})
	return rooms, err
}

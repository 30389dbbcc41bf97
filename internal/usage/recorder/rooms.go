package recorder

import (
	"context"
	"time"

	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const (
	// roomInterval is how often free accelerators are measured. The times divide the day, so that a new leader continues at
	// the same times and none is measured twice.
	roomInterval = 10 * time.Minute
	// measureTimeout is how long that may take.
	measureTimeout = 10 * time.Second
)

// recordRoom measures and records how much is free, once in each interval. What cannot be measured is left out until the next.
func (r *Recorder) recordRoom(ctx context.Context, l Ledger) error {
	slot := r.now().Truncate(roomInterval)
	if slot.Equal(r.measured) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	room, there, err := r.measure(limited)
	if err != nil && ctx.Err() == nil {
		r.log.Error(err, "Cannot measure free accelerators; reports leave this time out", "after", roomInterval.String())
	}
	if err == nil && there {
		if err := r.recordEntries(ctx, l, ledger.Entries{Rooms: []ledger.FreeRoom{{
			At: slot, Free: room.Free, Unusable: min(1, max(0, room.Unusable)), Gangs: int64(room.Weight),
		}}}); err != nil {
			return err
		}
	}
	r.measured = slot
	return nil
}

package growth

import "time"

// Room follows for how long there has been room for more workers of a training:
//
//	workers that fit   2 since 10:00          6 from 10:03              4 from 10:05
//	Since              10:00                  10:02 (2 * 3 min over 6)  10:02 (the others have waited as long on average)
//
// The zero value is no room.
type Room struct {
	// Since is since when the room has been free, on average over the workers that fit; zero without room.
	Since time.Time
	// fits is how many more workers fit, and placed how much surplus the training had then.
	fits, placed int32
}

// Follow returns the room as it is once so many workers fit beside so much surplus. Whatever a training missed before its
// surplus changed counts no longer.
func (r Room) Follow(fits, placed int32, now time.Time) Room {
	switch {
	case fits <= 0:
		return Room{placed: placed}
	case r.fits == 0 || r.placed != placed || now.Before(r.Since):
		return Room{Since: now, fits: fits, placed: placed}
	case fits > r.fits:
		idle := float64(now.Sub(r.Since)) * float64(r.fits) / float64(fits)
		return Room{Since: now.Add(-time.Duration(idle)), fits: fits, placed: placed}
	}
	return Room{Since: r.Since, fits: fits, placed: placed}
}

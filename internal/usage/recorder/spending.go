package recorder

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const (
	// askedFor is how long a window is read after it was last asked for.
	askedFor = 10 * time.Minute
	// firstReading is how long the first reading of a window may take before its use counts as unknown. The ledger is asked as
	// soon as it is open, and has a minute to answer.
	firstReading = 2 * time.Minute
)

// ErrUnknown is for use that could not be read from the ledger.
var ErrUnknown = errors.New("the use is unknown: the ledger cannot be read, or there is none")

// spendings are what was read of the windows that are asked for.
type spendings struct {
	mu      sync.Mutex
	windows map[time.Duration]*spending
}

// spending is what was used in a window. Its maps are never changed.
type spending struct {
	since     time.Time // when it was asked for first
	asked     time.Time
	read      time.Time // zero for never
	failed    bool      // the last try, which is why it waits for the next minute
	byProfile map[string]map[string]int64
	begun     time.Time // when the ledger did
}

// SpendingOf is what users of a profile have used of accelerators, all that the configuration knows together, in a window of time
// that ends now. It never waits. The first calls for a window return [admission.ErrUnread], until it was read.
// ErrUnknown: there is no ledger, or it cannot be read.
func (r *Recorder) SpendingOf(profile string, window time.Duration) (admission.Spending, error) {
	now := r.now()
	r.spendings.mu.Lock()
	defer r.spendings.mu.Unlock()
	if r.windows == nil {
		r.windows = map[time.Duration]*spending{}
	}
	s := r.windows[window]
	if s == nil {
		s = &spending{since: now}
		r.windows[window] = s
	}
	s.asked = now
	switch {
	case !s.read.IsZero():
	case r.config.Ledger.IsConfigured() && now.Sub(s.since) < firstReading:
		return admission.Spending{}, admission.ErrUnread
	default:
		return admission.Spending{}, ErrUnknown
	}
	return admission.Spending{ByUser: s.byProfile[profile], Age: now.Sub(s.read), Begun: s.begun}, nil
}

// toRead are the windows to read: those that were never tried, and, if all is true, the others too. A window that was not
// asked for lately is forgotten.
func (s *spendings) toRead(now time.Time, all bool) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.windows, func(_ time.Duration, w *spending) bool { return now.Sub(w.asked) > askedFor })
	var windows []time.Duration
	for window, w := range s.windows {
		if all || w.read.IsZero() && !w.failed {
			windows = append(windows, window)
		}
	}
	return windows
}

// readSpendings reads what was used in the windows that are due. A window that cannot be read is tried again in a minute.
// Recording goes on meanwhile.
func (r *Recorder) readSpendings(ctx context.Context, l Ledger, all bool) {
	for _, window := range r.toRead(r.now(), all) {
		now := r.now()
		used, begun, err := r.usedByUser(ctx, l, now.Add(-window), now)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.metrics.failures.Inc()
			r.log.Error(err, "Cannot read the use of budgets from the ledger, trying again", "window", window.String(),
				"after", seenInterval.String())
			r.noteFailed(window)
			continue
		}
		r.spendings.mu.Lock()
		if w := r.windows[window]; w != nil {
			w.read, w.byProfile, w.begun, w.failed = now, used, begun, false
		}
		r.spendings.mu.Unlock()
	}
}

// noteFailed notes that a window could not be read.
func (s *spendings) noteFailed(window time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.windows[window]; w != nil {
		w.failed = true
	}
}

// usedByUser is what was used of accelerators, by profile and user, and when the ledger began.
func (r *Recorder) usedByUser(ctx context.Context, l Ledger, from, to time.Time) (
	used map[string]map[string]int64, begun time.Time, err error,
) {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if begun, err = l.KnownSince(limited); err != nil {
		return nil, begun, err
	}
	totals, err := l.QueryUsage(limited, ledger.Query{
		From: from, To: to, GroupBy: []ledger.Field{ledger.Profile, ledger.User},
		Where: map[ledger.Field][]string{ledger.Resource: r.config.CountedAccelerators()},
	})
	if err != nil {
		return nil, begun, err
	}
	used = map[string]map[string]int64{}
	for _, t := range totals {
		profile, user := t.Group[0], t.Group[1]
		if used[profile] == nil {
			used[profile] = map[string]int64{}
		}
		used[profile][user] += t.AmountSeconds
	}
	return used, begun, nil
}

package kube

import (
	"net/http"
	"sync"
	"time"
)

// Clock tells the time by the API server's clock. All times that planners compare with theirs are from there or near it: when
// objects were created, when they are to be gone, and what statuses say. The clock of the operator's own node may be wrong, or
// may be set at any moment, and then a deadline of an hour would be over at once, or a back-off of seconds last an hour.
//
//	every answer of the API server says what time it is there (the header Date)
//	between two answers the time goes on by this machine's monotonic clock, which cannot be set
//
// Before the first answer it is the time of this machine.
type Clock struct {
	// local reads this machine's clock, with its monotonic reading.
	local func() time.Time

	mu sync.Mutex
	// at is when this machine's clock was read, and was what time it was then.
	at, was time.Time
}

const (
	// mostApart is by how much the two clocks may differ: less does no harm, and is not worth a time that goes back. Answers tell
	// whole seconds.
	mostApart = 5 * time.Second
	// longestAnswer is how long a request may take whose answer counts: one that was long on its way does not say what time it is.
	longestAnswer = 5 * time.Second
)

// NewClock returns a clock that goes by this machine until the API server has told the time.
func NewClock() *Clock { return newClock(time.Now) }

func newClock(local func() time.Time) *Clock {
	at := local()
	return &Clock{local: local, at: at, was: at.Round(0)}
}

// Now is what time it is. It has no monotonic reading, and goes back only if the API server's clock was set back.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timeAt(c.local())
}

// timeAt is what time it was when this machine's clock was read; the lock is held.
func (c *Clock) timeAt(local time.Time) time.Time { return c.was.Add(local.Sub(c.at)) }

// WrapTransport is for rest.Config's Wrap. It hears the time from every answer.
func (c *Clock) WrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		sent := c.local()
		response, err := next.RoundTrip(r)
		if err == nil {
			c.hear(response.Header.Get("Date"), sent, c.local())
		}
		return response, err
	})
}

// hear sets the clock if the API server's is another: it told the time after the request was sent and before its answer came.
func (c *Clock) hear(date string, sent, received time.Time) {
	told, err := http.ParseTime(date)
	if err != nil || received.Sub(sent) > longestAnswer {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	earliest, latest := c.timeAt(sent).Add(-mostApart), c.timeAt(received).Add(mostApart)
	if told.After(latest) || told.Add(time.Second).Before(earliest) {
		c.at, c.was = received, told.Add(time.Second/2)
	}
}

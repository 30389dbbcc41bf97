package kube

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Fence lets an operator that leads by a Lease write only while the Lease is its own. client-go's election notices that a Lease
// is lost when it would renew it, up to the renew deadline after the process was paused past its duration (by a debugger, a
// frozen node, a virtual machine that moved); until then it would write beside the next leader, going by what it saw before.
type Fence struct {
	path     string
	duration time.Duration
	now      func() time.Time

	mu sync.Mutex
	// renewed is when the request was sent by which the Lease was last written; zero for an operator that never led.
	renewed time.Time
}

// NewFence returns a fence for who leads by the Lease of that name, which is another's to take once it was not renewed for
// duration.
func NewFence(lease string, duration time.Duration) *Fence {
	return &Fence{path: "/leases/" + lease, duration: duration, now: time.Now}
}

// Wrap is for rest.Config's Wrap. A write that the fence refuses never leaves the process, and returns an error that says why.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			return next.RoundTrip(r)
		}
		if late := f.late(); late > 0 {
			if r.Body != nil {
				_ = r.Body.Close() // A RoundTripper must close it, also on errors.
			}
			return nil, fmt.Errorf("the Lease was not renewed for %s, and may be another's after %s: "+
				"nothing is written any more, and the operator ends", late.Round(time.Second), f.duration)
		}
		sent := f.now()
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode < http.StatusMultipleChoices && f.isLease(r) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.renewed = sent
		}
		return response, err
	})
}

// isLease tells whether the request writes the Lease. One that creates it names it in its body only.
func (f *Fence) isLease(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, f.path) || (r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/leases"))
}

// late is for how long the Lease was not renewed if that is too long, else zero. The clock on the wall goes on while a virtual
// machine stands still, which the monotonic one does not; either may show it.
func (f *Fence) late() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.renewed.IsZero() {
		return 0
	}
	now := f.now()
	if since := max(now.Sub(f.renewed), now.Round(0).Sub(f.renewed.Round(0))); since >= f.duration {
		return since
	}
	return 0
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

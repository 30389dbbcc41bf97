package kube

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Fence lets the leader write only while its Lease is its own. If the process is paused for longer than the Lease lasts (by a
// debugger, a frozen node, a virtual machine that moved), client-go notices the loss only when it tries to renew, up to the
// renew deadline later. Until then the old leader would write beside the new one, from stale caches.
type Fence struct {
	path     string
	duration time.Duration
	now      func() time.Time

	mu sync.Mutex
	// renewed is when the request was sent that last wrote the Lease; zero for an operator that never led.
	renewed time.Time
}

// NewFence returns a fence for the Lease of that name, which another operator may take once it was not renewed for duration.
func NewFence(lease string, duration time.Duration) *Fence {
	return &Fence{path: "/leases/" + lease, duration: duration, now: time.Now}
}

// WrapTransport is for rest.Config's Wrap. A write that the fence refuses never leaves the process, and returns an error that
// says why.
func (f *Fence) WrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			return next.RoundTrip(r)
		}
		if late := f.overdueBy(f.isLease(r)); late > 0 {
			if r.Body != nil {
				_ = r.Body.Close() // A RoundTripper must close it, also on errors.
			}
			return nil, fmt.Errorf("this operator has not renewed its Lease for %s, and another one may hold it after %s: "+
				"it writes nothing any more, and exits", late.Round(time.Second), f.duration)
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

// isLease is true if the request writes the Lease. A request that creates one names it in its body only, so every such request
// counts.
func (f *Fence) isLease(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, f.path) || (r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/leases"))
}

// overdueBy is for how long the Lease was not renewed if that is too long, else zero. While a virtual machine stands still its
// wall clock goes on and its monotonic clock may not, so the larger difference counts. But the wall clock may also have been set,
// and then the Lease is still ours. Only renewing it can tell: the API server refuses that if another has taken it meanwhile. So
// renewals go by the monotonic clock alone, and nothing else is written until one has succeeded.
func (f *Fence) overdueBy(renewing bool) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.renewed.IsZero() {
		return 0
	}
	now := f.now()
	since := now.Sub(f.renewed)
	if !renewing {
		since = max(since, now.Round(0).Sub(f.renewed.Round(0)))
	}
	if since >= f.duration {
		return since
	}
	return 0
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

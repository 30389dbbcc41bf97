package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unsafe"

	. "github.com/onsi/gomega"
)

// fenced is an operator behind a fence, whose API server answers everything with a code.
type fenced struct {
	g      *WithT
	ctx    context.Context //nolint:containedctx // of the test
	fence  *Fence
	client http.Client
	server string
	code   int
	asked  int
	now    time.Time
}

func newFenced(t *testing.T) *fenced {
	t.Helper()
	f := &fenced{g: NewWithT(t), ctx: t.Context(), fence: NewFence("tideline", 15*time.Second), code: http.StatusOK, now: time.Now()}
	f.fence.now = func() time.Time { return f.now }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f.asked++
		w.WriteHeader(f.code)
	}))
	t.Cleanup(server.Close)
	f.server, f.client.Transport = server.URL, f.fence.WrapTransport(http.DefaultTransport)
	return f
}

const (
	aLease = "/apis/coordination.k8s.io/v1/namespaces/n/leases"
	aPod   = "/api/v1/namespaces/n/pods/p"
)

// send returns the error with which a request is refused, and holds that a refused one does not leave the process.
func (f *fenced) send(method, path string) error {
	r, err := http.NewRequestWithContext(f.ctx, method, f.server+path, strings.NewReader("{}"))
	f.g.Expect(err).NotTo(HaveOccurred())
	before := f.asked
	response, err := f.client.Do(r)
	if err != nil {
		f.g.Expect(f.asked).To(Equal(before))
		return err
	}
	f.g.Expect(response.Body.Close()).To(Succeed())
	return nil
}

func TestWhoNeverLedMayWrite(t *testing.T) {
	f := newFenced(t)
	f.g.Expect(f.send(http.MethodPost, aPod)).To(Succeed())
	f.now = f.now.Add(time.Hour)
	f.g.Expect(f.send(http.MethodPost, aPod)).To(Succeed())
}

func TestWritesEndWithTheLease(t *testing.T) {
	for _, first := range []struct{ method, path string }{{http.MethodPost, aLease}, {http.MethodPut, aLease + "/tideline"}} {
		f := newFenced(t)
		f.g.Expect(f.send(first.method, first.path)).To(Succeed())
		f.now = f.now.Add(14 * time.Second)
		f.g.Expect(f.send(http.MethodDelete, aPod)).To(Succeed())
		f.g.Expect(f.send(http.MethodPut, aLease+"/tideline")).To(Succeed())
		f.now = f.now.Add(14 * time.Second)
		f.g.Expect(f.send(http.MethodPut, aLease+"/another")).To(Succeed())
		f.g.Expect(f.send(http.MethodDelete, aPod)).To(Succeed(), "it was renewed")
		f.now = f.now.Add(time.Second)
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			f.g.Expect(f.send(method, aPod)).To(MatchError(ContainSubstring("this operator has not renewed its Lease for 15s")), method)
		}
		f.g.Expect(f.send(http.MethodGet, aPod)).To(Succeed())
		f.g.Expect(f.send(http.MethodPut, aLease+"/tideline")).NotTo(Succeed(), "what was lost is not taken back: caches are old")
	}
}

func TestRefusedRenewalIsNone(t *testing.T) {
	f := newFenced(t)
	f.g.Expect(f.send(http.MethodPut, aLease+"/tideline")).To(Succeed())
	f.now, f.code = f.now.Add(14*time.Second), http.StatusConflict
	f.g.Expect(f.send(http.MethodPut, aLease+"/tideline")).To(Succeed())
	f.now = f.now.Add(time.Second)
	f.g.Expect(f.send(http.MethodPost, aPod)).NotTo(Succeed())
}

func TestAClockThatIsSetForwardStopsNoLeader(t *testing.T) {
	f := newFenced(t)
	f.g.Expect(f.send(http.MethodPut, aLease+"/tideline")).To(Succeed())
	f.now = setForward(f.g, f.now.Add(2*time.Second), time.Hour)
	f.g.Expect(f.send(http.MethodPost, aPod)).To(MatchError(ContainSubstring("has not renewed its Lease for 1h0m2s")),
		"or else the machine stood still for an hour, and another leads")
	f.code = http.StatusConflict
	f.g.Expect(f.send(http.MethodPut, aLease+"/tideline")).To(Succeed(), "the API server is asked")
	f.g.Expect(f.send(http.MethodPost, aPod)).NotTo(Succeed(), "another leads")
	f.code = http.StatusOK
	f.g.Expect(f.send(http.MethodPut, aLease+"/tideline")).To(Succeed())
	f.g.Expect(f.send(http.MethodPost, aPod)).To(Succeed(), "the Lease was its own")
	f.now = setForward(f.g, f.now, -time.Hour)
	f.g.Expect(f.send(http.MethodPost, aPod)).To(Succeed(), "and stays so when the clock is put right")
	f.now = f.now.Add(15 * time.Second)
	f.g.Expect(f.send(http.MethodPut, aLease+"/tideline")).NotTo(Succeed(), "time that has passed is another thing")
}

// setForward is a time at which the wall clock was set, and not the monotonic one. No constructor makes such a time.
func setForward(g *WithT, at time.Time, by time.Duration) time.Time {
	set := at
	*(*uint64)(unsafe.Pointer(&set)) += uint64(by/time.Second) << 30 // the first field of a time with both readings
	g.Expect([]time.Duration{set.Sub(at), set.Round(0).Sub(at.Round(0))}).To(Equal([]time.Duration{0, by}),
		"times look as this test knows them")
	return set
}

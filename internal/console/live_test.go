package console

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/test/testutil/browser"
)

// moving is a console whose cluster and whose reader's rights change.
type moving struct {
	*Server
	model  atomic.Pointer[view.Model]
	barred atomic.Bool
}

func newMoving(m *view.Model) *moving {
	w := &moving{}
	w.model.Store(m)
	w.Server = serve(m, func(authorizationv1.SubjectAccessReviewSpec) bool { return !w.barred.Load() })
	w.gather = func(context.Context) (*view.Model, error) { return w.model.Load(), nil }
	w.pace = func(int, time.Duration) time.Duration { return 10 * time.Millisecond }
	return w
}

// bar takes the reader's rights away, also from what is remembered.
func (w *moving) bar() {
	w.barred.Store(true)
	w.guard.mutex.Lock()
	defer w.guard.mutex.Unlock()
	w.guard.answers = nil
}

// ServeHTTP serves ada, who sends her token with each request.
func (w *moving) ServeHTTP(out http.ResponseWriter, req *http.Request) {
	req.Header.Set("Authorization", "Bearer good")
	w.Server.ServeHTTP(out, req)
}

// stream follows a page and passes on its events: their names and what they carry.
func stream(t *testing.T, address string) (status int, events <-chan [2]string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req) //nolint:bodyclose // the reader of its events closes it
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan [2]string, 1000)
	go func() {
		defer close(all)
		defer func() { _ = res.Body.Close() }()
		var event [2]string
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
			case "event":
				event[0] = value
			case "data":
				event[1] += value + "\n"
			case "":
				if event[0] != "" {
					all <- event
				}
				event = [2]string{}
			}
		}
	}()
	return res.StatusCode, all
}

func TestPageFollowsTheClusterAndTheReadersRights(t *testing.T) {
	g := NewWithT(t)
	w := newMoving(world(job("one", "llama", "no room")))
	server := httptest.NewServer(w)
	defer server.Close()
	status, events := stream(t, server.URL+"/console/jobs")
	g.Expect(status).To(Equal(http.StatusOK))
	var event [2]string
	g.Eventually(events).Should(Receive(&event))
	g.Expect(event[0]).To(Equal("page"))
	g.Expect(event[1]).To(And(ContainSubstring("one/llama"), Not(ContainSubstring("<main")), Not(ContainSubstring("<nav"))))
	w.model.Store(world(job("one", "llama", "no room"), job("one", "ctr", hostile)))
	g.Eventually(events).Should(Receive(&event))
	g.Expect(event[1]).To(And(ContainSubstring("one/ctr"), Not(ContainSubstring("<script"))))
	g.Consistently(events, "100ms").ShouldNot(Receive(), "nothing is sent while nothing changes")
	w.bar()
	g.Eventually(events).Should(Receive(&event))
	g.Expect(event[0]).To(Equal("end"))
	g.Expect(event[1]).NotTo(ContainSubstring("llama"))
	g.Eventually(events).Should(BeClosed())
	g.Eventually(w.streams.count).Should(BeZero())
}

func TestStreamsAreBounded(t *testing.T) {
	g := NewWithT(t)
	w := newMoving(world())
	server := httptest.NewServer(w)
	defer server.Close()
	for range mostLiveEach {
		status, _ := stream(t, server.URL+"/console/")
		g.Expect(status).To(Equal(http.StatusOK))
	}
	status, _ := stream(t, server.URL+"/console/")
	g.Expect(status).To(Equal(http.StatusTooManyRequests))
	ctx, end := context.WithCancel(t.Context())
	end()
	g.Expect(w.streams.Start(ctx)).To(Succeed())
	g.Eventually(w.streams.count).Should(BeZero(), "streams end with the operator")
}

func TestFollowedPagesTakeATenthOfAProcessorTogether(t *testing.T) {
	g := NewWithT(t)
	g.Expect(pace(1, time.Millisecond)).To(Equal(5 * time.Second))
	g.Expect(pace(50, 20*time.Millisecond)).To(Equal(10 * time.Second))
	g.Expect(pace(200, 200*time.Millisecond)).To(Equal(400 * time.Second))
}

func TestBrowserShowsTheClusterAsItIs(t *testing.T) {
	chromium, err := browser.Start(t.Context())
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = chromium.Stop() }()
	g := NewWithT(t)
	w := newMoving(world(job("one", "llama", "no room")))
	server := httptest.NewServer(w)
	defer server.Close()
	g.Expect(chromium.Show(server.URL+"/console/jobs", 1440, "light")).To(Succeed())
	shown := func() (text string, err error) {
		return text, chromium.Ask(`document.body.innerText`, &text)
	}
	g.Eventually(shown).Should(And(ContainSubstring("one/llama"), ContainSubstring("Pause")))
	w.model.Store(world(job("one", "ctr", "no room")))
	g.Eventually(shown).Should(And(ContainSubstring("one/ctr"), Not(ContainSubstring("one/llama"))))

	var done bool
	g.Expect(chromium.Ask(`getSelection().selectAllChildren(document.querySelector("main")), true`, &done)).To(Succeed())
	w.model.Store(world(job("one", "ranker", "no room")))
	g.Consistently(shown, "200ms").Should(ContainSubstring("one/ctr"), "what somebody marks stays")
	g.Expect(chromium.Ask(`getSelection().removeAllRanges(), true`, &done)).To(Succeed())
	g.Eventually(shown).Should(ContainSubstring("one/ranker"), "what came meanwhile is shown afterwards")
	w.model.Store(world(job("one", "ctr", "no room")))
	g.Eventually(shown).Should(ContainSubstring("one/ctr"))

	var pressed bool
	g.Expect(chromium.Ask(`document.querySelector("nav > button").click(), true`, &pressed)).To(Succeed())
	g.Expect(shown()).To(ContainSubstring("Follow"))
	g.Eventually(w.streams.count).Should(BeZero())
	w.model.Store(world(job("one", "other", "no room")))
	g.Consistently(shown, "200ms").Should(ContainSubstring("one/ctr"), "a page that is paused stays")
	g.Expect(chromium.Ask(`document.querySelector("nav > button").click(), true`, &pressed)).To(Succeed())
	g.Eventually(shown).Should(And(ContainSubstring("one/other"), ContainSubstring("Pause")))
	w.bar()
	g.Eventually(shown).Should(And(ContainSubstring("Follow"), Not(ContainSubstring("one/other"))), "it says why it ended")
}

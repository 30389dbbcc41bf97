package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// How an open page follows the cluster: its script asks for the same address as an event stream. The server makes the page again
// from time to time, as for a new reader, and sends what is within <main> when that has changed.

const (
	// liveEvery is how long a page that is followed stays as it is at least, and liveShare is what all that are followed may take
	// together, in processors.
	liveEvery, liveShare = 5 * time.Second, 0.1
	// mostLive and mostLiveEach are how many streams there may be, and of one reader.
	mostLive, mostLiveEach = 200, 8
	// liveLasts is when a stream ends; a browser that is still there begins another.
	liveLasts = 30 * time.Minute
	// writeTimeout bounds how long a reader may take for one event.
	writeTimeout = 30 * time.Second
)

// pace is how long a page waits until it is made again, if that takes so long and as many pages are followed.
func pace(followed int, took time.Duration) time.Duration {
	return max(liveEvery, time.Duration(float64(took)*float64(followed)/liveShare))
}

// streams counts who follows, and ends all streams when the operator ends.
type streams struct {
	mutex   sync.Mutex
	readers map[string]int
	all     int
	ended   chan struct{}
}

func newStreams() *streams { return &streams{readers: map[string]int{}, ended: make(chan struct{})} }

// enter counts a reader's stream; false if there are too many.
func (s *streams) enter(reader string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.all >= mostLive || s.readers[reader] >= mostLiveEach {
		return false
	}
	s.all++
	s.readers[reader]++
	return true
}

func (s *streams) leave(reader string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.all--
	if s.readers[reader]--; s.readers[reader] == 0 {
		delete(s.readers, reader)
	}
}

func (s *streams) count() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.all
}

// Start waits for the end of the operator. Open streams would hold up its server's.
func (s *streams) Start(ctx context.Context) error {
	<-ctx.Done()
	close(s.ended)
	return nil
}

// NeedLeaderElection is false: each operator serves its readers.
func (*streams) NeedLeaderElection() bool { return false }

// follow streams a page to a reader until either ends, or the reader may not see it any more.
func (s *Server) follow(w http.ResponseWriter, req *http.Request, at address) {
	begin := time.Now()
	first := s.read(req, at)
	if first.code != http.StatusOK {
		http.Error(w, first.page.Title+". "+first.page.Problem, first.code)
		return
	}
	reader := first.page.Sight.User
	if !s.streams.enter(reader) {
		http.Error(w, fmt.Sprintf("%d pages are followed already, or %d of yours", mostLive, mostLiveEach), http.StatusTooManyRequests)
		return
	}
	defer s.streams.leave(reader)
	took := time.Since(begin)
	w.Header().Set("Content-Type", "text/event-stream")
	sent, out := mainOf(first), http.NewResponseController(w)
	last := sha256.Sum256(sent)
	if err := send(w, out, "page", sent); err != nil {
		return
	}
	for time.Since(begin) < liveLasts {
		select {
		case <-time.After(s.pace(s.streams.count(), took)):
		case <-req.Context().Done():
			return
		case <-s.streams.ended:
			return
		}
		from := time.Now()
		next := s.read(req, at)
		took = time.Since(from)
		event, content := "page", mainOf(next)
		switch sum := sha256.Sum256(content); {
		case next.code == http.StatusServiceUnavailable, next.code == http.StatusTooManyRequests,
			next.code == http.StatusOK && sum == last:
			event, content = "", nil // A line that says nothing shows whether the reader is still there.
		case next.code != http.StatusOK:
			event = "end"
		default:
			last = sum
		}
		if err := send(w, out, event, content); err != nil || event == "end" {
			return
		}
	}
}

// mainOf is what a page has within <main>.
func mainOf(a answerTo) []byte {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, a.template, a.page); err != nil {
		return nil
	}
	_, content, _ := strings.Cut(b.String(), "<main>")
	content, _, _ = strings.Cut(content, "</main>")
	return []byte(content)
}

// send writes an event, or a comment if it has no name.
func send(w http.ResponseWriter, out *http.ResponseController, name string, content []byte) error {
	var b bytes.Buffer
	if name == "" {
		b.WriteString(":\n\n")
	} else {
		fmt.Fprintf(&b, "event: %s\n", name)
		for line := range bytes.Lines(content) {
			fmt.Fprintf(&b, "data: %s\n", bytes.TrimRight(line, "\r\n"))
		}
		b.WriteString("\n")
	}
	// Where deadlines cannot be set, the server's own hold.
	_ = out.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := w.Write(b.Bytes()); err != nil {
		return err
	}
	return out.Flush()
}

// isFollowed tells whether a request asks to follow its page.
func isFollowed(req *http.Request) bool { return req.Header.Get("Accept") == "text/event-stream" }

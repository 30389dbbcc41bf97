package faults

import (
	"io"
	"net/http"
	"time"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// delayWatches has all that watches tell from now on arrive so much later.
func (p *proxy) delayWatches(by func(resource string) time.Duration) { p.watchDelay.Store(&by) }

func (p *proxy) delayWatch(response *http.Response, info *apirequest.RequestInfo) {
	if info.Verb == "watch" {
		response.Body = newDelayed(response.Body, func() time.Duration {
			by := p.watchDelay.Load()
			if by == nil || (*by)(info.Resource) == 0 {
				return 0
			}
			p.delayedParts.Add(1)
			return (*by)(info.Resource)
		})
	}
}

// delayed is a stream of which every part arrives later, in the same order.
type delayed struct {
	source io.ReadCloser
	parts  chan part
	closed chan struct{}
	rest   []byte
	err    error
}

type part struct {
	content []byte
	due     time.Time
	err     error
}

func newDelayed(source io.ReadCloser, by func() time.Duration) *delayed {
	// More parts than this are still delayed, by those before them.
	d := &delayed{source: source, parts: make(chan part, 4096), closed: make(chan struct{})}
	go func() {
		var err error
		for err == nil {
			var n int
			buffer := make([]byte, 16<<10)
			n, err = source.Read(buffer)
			select {
			case d.parts <- part{buffer[:n], time.Now().Add(by()), err}:
			case <-d.closed:
				return
			}
		}
	}()
	return d
}

// Read implements io.Reader.
func (d *delayed) Read(into []byte) (int, error) {
	for len(d.rest) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		select {
		case next := <-d.parts:
			d.rest, d.err = next.content, next.err
			select {
			case <-time.After(time.Until(next.due)):
			case <-d.closed:
				return 0, io.ErrClosedPipe
			}
		case <-d.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(into, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// Close implements io.Closer; it is called once.
func (d *delayed) Close() error {
	close(d.closed)
	return d.source.Close()
}

package kube

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	// gatheredBytes is how much of a connection is read at a time. What fills it is read on at once.
	gatheredBytes = 16 << 10
	// busyBytes is how much in a period makes a connection busy: waiting would hold up all streams on it.
	busyBytes = 64 << 10
)

// Dial opens a connection, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// GatherReads returns a Dial for connections that are read once in a period, all of them at the same moments. The operator
// follows thousands of streams, and waking for each line of each costs more than reading it. An answer may come later by the
// period. A connection on which more than busyBytes came in the last period is read without waiting.
func GatherReads(dial Dial, period time.Duration) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gatheredConn{Conn: c, period: period, since: time.Now(), closed: make(chan struct{})}, nil
	}
}

// gatheredConn is a connection that GatherReads opened. As any connection of HTTP or TLS it is read by one goroutine at a time.
type gatheredConn struct {
	net.Conn

	period time.Duration
	buffer []byte
	// unread is what was read and not handed out, and emptied tells that the last read got all there was.
	unread  []byte
	emptied bool
	// came is how much was read since a moment, and before how much in a period before that.
	since        time.Time
	came, before int
	closing      sync.Once
	closed       chan struct{}
}

// Read implements net.Conn.
func (c *gatheredConn) Read(p []byte) (int, error) {
	if len(c.unread) == 0 {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// isBusy tells whether waiting would hold the connection up.
func (c *gatheredConn) isBusy() bool {
	if took := time.Since(c.since); took >= c.period {
		c.before = int(int64(c.came) * int64(c.period) / int64(took))
		c.since, c.came = time.Now(), 0
	}
	return max(c.before, c.came) > busyBytes
}

// fill waits for the next moment at which connections are read, if the last read left nothing, and reads.
func (c *gatheredConn) fill() error {
	if c.emptied && !c.isBusy() {
		timer := time.NewTimer(c.period - time.Duration(time.Now().UnixNano())%c.period)
		defer timer.Stop()
		select {
		case <-c.closed:
			return net.ErrClosed
		case <-timer.C:
		}
	}
	if c.buffer == nil {
		c.buffer = make([]byte, gatheredBytes)
	}
	n, err := c.Conn.Read(c.buffer)
	c.unread, c.emptied = c.buffer[:n], n < len(c.buffer)
	c.came += n
	if n > 0 {
		return nil // An error comes again with the next read.
	}
	return err
}

// Close implements net.Conn.
func (c *gatheredConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

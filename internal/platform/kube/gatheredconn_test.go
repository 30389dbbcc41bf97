package kube

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// pipe returns both ends of a connection that is gathered each second: what is read, and where it is written.
func pipe(t *testing.T) (reads, writes net.Conn) {
	t.Helper()
	written, read := net.Pipe()
	dial := GatherReads(func(context.Context, string, string) (net.Conn, error) { return &buffered{Conn: read}, nil }, time.Second)
	c, err := dial(t.Context(), "tcp", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	return c, written
}

// buffered is an end of a pipe that keeps what was written, as a socket does.
type buffered struct {
	net.Conn

	content []byte
	reads   int
}

func (b *buffered) Read(p []byte) (int, error) {
	b.reads++
	if len(b.content) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.content)
	b.content = b.content[n:]
	return n, nil
}

func TestPacketsOfASecondAreReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		socket := &buffered{content: []byte("a")}
		c := &gatheredConn{Conn: socket, period: time.Second, since: time.Now(), closed: make(chan struct{})}
		p := make([]byte, 1)
		began := time.Now()
		g.Expect(c.Read(p)).To(Equal(1))
		g.Expect(time.Since(began)).To(BeZero(), "the first is read at once")
		socket.content = []byte("bcd")
		for range 3 {
			g.Expect(c.Read(p)).To(Equal(1))
		}
		g.Expect(socket.reads).To(Equal(2))
		g.Expect(time.Since(began)).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Second)))
	})
}

func TestMuchIsReadWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := &gatheredConn{
			Conn: &buffered{content: make([]byte, 10*gatheredBytes+1)}, period: time.Second, since: time.Now(),
			closed: make(chan struct{}),
		}
		began := time.Now()
		g.Expect(io.ReadFull(c, make([]byte, 10*gatheredBytes+1))).To(Equal(10*gatheredBytes + 1))
		g.Expect(time.Since(began)).To(BeZero())
	})
}

func TestABusyConnectionIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		socket := &buffered{}
		c := &gatheredConn{Conn: socket, period: time.Second, since: time.Now(), closed: make(chan struct{})}
		p := make([]byte, gatheredBytes)
		read := func(much int) time.Duration {
			began := time.Now()
			socket.content = make([]byte, much)
			g.Expect(io.ReadFull(c, p[:much])).To(Equal(much))
			return time.Since(began)
		}
		for range 10 {
			read(gatheredBytes) // at once, because each fills what is read at a time
		}
		g.Expect(read(1)).To(BeZero(), "the last read left something, for all it knew")
		g.Expect(read(1)).To(BeZero(), "it is busy")
		<-time.After(time.Second)
		g.Expect(read(1)).To(BeZero(), "it was so in the last second")
		<-time.After(time.Second)
		g.Expect(read(1)).NotTo(BeZero())
	})
}

func TestAConnectionThatIsClosedIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		reads, writes := pipe(t)
		go func() { _, _ = writes.Write([]byte("a")) }()
		g.Expect(reads.Read(make([]byte, 1))).To(Equal(1))
		failed := make(chan error)
		go func() {
			_, err := reads.Read(make([]byte, 1))
			failed <- err
		}()
		synctest.Wait()
		began := time.Now()
		g.Expect(reads.Close()).To(Succeed())
		g.Expect(<-failed).To(MatchError(net.ErrClosed))
		g.Expect(time.Since(began)).To(BeZero())
		g.Expect(reads.Close()).To(Succeed(), "twice")
	})
}

//go:build linux

package inside

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// Relay passes each connection that a listener accepts on to an address of a network, until the listener is closed.
func Relay(ctx context.Context, from net.Listener, network, address string) error {
	dial := func() (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, network, address) }
	for {
		asking, err := from.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go pass(asking, dial)
	}
}

// pass copies both ways until both have ended.
func pass(asking net.Conn, dial func() (net.Conn, error)) {
	defer func() { _ = asking.Close() }()
	answering, err := dial()
	if err != nil {
		return
	}
	defer func() { _ = answering.Close() }()
	var group sync.WaitGroup
	for _, way := range [][2]net.Conn{{asking, answering}, {answering, asking}} {
		group.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	group.Wait()
}

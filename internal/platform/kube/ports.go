package kube

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// Served is an address that the operator serves, and where it is configured.
type Served struct {
	// What is served, as in "health checks".
	What string
	// Address is HOST:PORT or :PORT.
	Address string
	// Flag sets the address, and Field of the configuration does.
	Flag, Field string
	// Anywhere holds where any free port will do, because nothing calls a certain one.
	Anywhere bool
}

// IsListenError tells whether the error is of a port of this machine, and not of the API server.
func IsListenError(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "listen"
}

// ExplainTaken names, for an error of a port that another program has, what was to be served there and how to choose another.
// Other errors it returns as they are.
func ExplainTaken(err error, served ...Served) error {
	var failed *net.OpError
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &failed) {
		return err
	}
	taken, ok := failed.Addr.(*net.TCPAddr)
	if !ok {
		return err
	}
	for _, s := range served {
		_, port, split := net.SplitHostPort(s.Address)
		if split == nil && port == strconv.Itoa(taken.Port) {
			anywhere := ""
			if s.Anywhere {
				anywhere = "; --" + s.Flag + "=127.0.0.1:0 takes any free port"
			}
			return fmt.Errorf("port %s for %s is taken by another program: choose another by --%s (%s of the configuration)%s: %w",
				port, s.What, s.Flag, s.Field, anywhere, err)
		}
	}
	return err
}

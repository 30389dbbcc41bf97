package serverurl

import (
	"errors"
	"net"
)

// Trouble says what is wrong with the way to a server, without addresses: those of this side are nobody's business, and one
// with a port of its own would be other words each time.
func Trouble(err error) string {
	var lookup *net.DNSError
	var operation *net.OpError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "no such host"
	case errors.As(err, &lookup):
		return "its name cannot be looked up"
	case errors.As(err, &operation) && operation.Timeout():
		return operation.Op + ": timed out"
	case errors.As(err, &operation):
		return operation.Op + ": " + operation.Err.Error()
	}
	return err.Error()
}

package serverurl

import (
	"errors"
	"net"
)

// DescribeError says why a server could not be reached, without addresses. Addresses of our side must not be shown, and their
// ports would change the message each time.
func DescribeError(err error) string {
	var lookup *net.DNSError
	var operation *net.OpError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "no such host"
	case errors.As(err, &lookup):
		return "its name cannot be resolved"
	case errors.As(err, &operation) && operation.Timeout():
		return operation.Op + ": timed out"
	case errors.As(err, &operation):
		return operation.Op + ": " + operation.Err.Error()
	}
	return err.Error()
}

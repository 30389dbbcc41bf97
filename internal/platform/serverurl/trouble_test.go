package serverurl

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTroubleHasNoAddresses(t *testing.T) {
	here := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 54321}
	for says, err := range map[string]error{
		"no such host":                &net.DNSError{Name: "prometheus", Server: "10.0.0.2", IsNotFound: true},
		"its name cannot be resolved": &net.DNSError{Name: "prometheus", Server: "10.0.0.2"},
		"dial: refused":               &net.OpError{Op: "dial", Source: here, Addr: here, Err: errors.New("refused")},
		"read: timed out":             fmt.Errorf("reading: %w", &net.OpError{Op: "read", Source: here, Err: os.ErrDeadlineExceeded}),
		"something else":              errors.New("something else"),
	} {
		NewWithT(t).Expect(DescribeError(err)).To(Equal(says))
	}
}

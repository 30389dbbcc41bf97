package kube

import (
	"errors"
	"fmt"
	"net"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTakenPortIsNamedWithItsFlag(t *testing.T) {
	g := NewWithT(t)
	other, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = other.Close() }()
	address := other.Addr().String()
	_, port, err := net.SplitHostPort(address)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	wrapped := fmt.Errorf("error listening on %s: %w", address, err)
	g.Expect(IsListenError(wrapped)).To(BeTrue())
	probes := Served{"health checks", ":" + port, "health-probe-bind-address", "health.bindAddress", true}
	off := Served{"metrics", "0", "metrics-bind-address", "metrics.bindAddress", false}
	g.Expect(ExplainTaken(wrapped, off, probes)).To(MatchError(
		HavePrefix("port " + port + " for health checks is taken by another program: choose another by --health-probe-bind-address " +
			"(health.bindAddress of the configuration); --health-probe-bind-address=127.0.0.1:0 takes any free port: ")))
	g.Expect(ExplainTaken(wrapped, Served{"metrics", ":1", "metrics-bind-address", "metrics.bindAddress", false})).To(Equal(wrapped))
	other2 := errors.New("no route")
	g.Expect(IsListenError(other2)).To(BeFalse())
	g.Expect(ExplainTaken(other2, probes)).To(Equal(other2))
}

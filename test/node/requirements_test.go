//go:build linux

package node

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheSystemIsDebian12(t *testing.T) {
	for name, c := range map[string]struct{ release, found string }{
		"Debian 12":       {"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n", ""},
		"without quotes":  {"ID=debian\nVERSION_ID=12", ""},
		"single quotes":   {"ID='debian'\nVERSION_ID='12'\n", ""},
		"Debian 11":       {"ID=debian\nVERSION_ID=\"11\"\n", "this is debian 11"},
		"Debian 13":       {"ID=debian\nVERSION_ID=\"13\"\n", "this is debian 13"},
		"Debian testing":  {"PRETTY_NAME=\"Debian GNU/Linux trixie/sid\"\nID=debian\n", "this is debian of no version"},
		"Ubuntu":          {"ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\n", "this is ubuntu 24.04"},
		"another with 12": {"ID=devuan\nVERSION_ID=\"12\"\n", "this is devuan 12"},
		"nothing":         {"", "/etc/os-release does not say what this is"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := otherSystem(c.release)
			if c.found == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(And(ContainSubstring("needs Debian 12 (bookworm)"), HaveSuffix(": "+c.found))))
		})
	}
}

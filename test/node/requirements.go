//go:build linux

package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// needed are the programs of a node that Debian has, by the package that has them.
var needed = []struct{ program, pack string }{
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{pluginFolder + "/bridge", "containernetworking-plugins"},
	{"debootstrap", "debootstrap"},
	{"ip", "iproute2"},
}

// pluginFolder is where Debian has CNI's plugins.
const pluginFolder = "/usr/lib/cni"

// Missing says why this machine can have no node, and what to do about it; nil if it can.
func Missing() error {
	if _, err := os.Stat("/etc/debian_version"); err != nil {
		return errors.New("a node needs Debian, whose packages its images are made of: there is no /etc/debian_version")
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("a node needs root, and this is user %d: run it with sudo", os.Geteuid())
	}
	var packages []string
	for _, n := range needed {
		if _, err := exec.LookPath(n.program); err != nil && !strings.Contains(strings.Join(packages, " "), n.pack) {
			packages = append(packages, n.pack)
		}
	}
	if len(packages) > 0 {
		return fmt.Errorf("a node needs %s: apt-get install --no-install-recommends %[1]s", strings.Join(packages, " "))
	}
	return nil
}

//go:build linux

package node

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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
	system, err := os.ReadFile("/etc/os-release")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := otherSystem(string(system)); err != nil {
		return err
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

// otherSystem is an error if the content of /etc/os-release is not that of Debian 12, which says what it is of.
func otherSystem(content string) error {
	about := map[string]string{}
	for line := range strings.Lines(content) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			about[name] = strings.Trim(value, `"'`)
		}
	}
	id, version := about["ID"], about["VERSION_ID"]
	if id == "debian" && version == "12" {
		return nil
	}
	found := "/etc/os-release does not say what this is"
	if id != "" {
		found = "this is " + id + " " + cmp.Or(version, "of no version")
	}
	return fmt.Errorf("a node needs Debian 12 (%s), whose programs it runs and whose packages its images are made of: %s",
		release, found)
}

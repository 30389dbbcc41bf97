//go:build linux

package node

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// asBuilding has the test's program make a base and wait to be killed: its cache.
const asBuilding = "TIDELINE_TEST_KILLED_BUILD"

// A build that is killed leaves no process and no mount, and the next one makes the base without what it wrote.
func TestNothingOutlivesAKilledBuild(t *testing.T) {
	if err := Missing(); err != nil {
		t.Fatal(err)
	}
	g := NewWithT(t)
	if cache := os.Getenv(asBuilding); cache != "" {
		_, err := buildBase(t.Context(), cache, io.Discard)
		g.Expect(err).NotTo(HaveOccurred())
		return
	}
	mounts := read(g, "/proc/self/mountinfo")
	cache := t.TempDir()
	file := filepath.Join(cache, "base-"+release+"-1.tar")
	g.Expect(os.WriteFile(digestFile(file), []byte("of a former file"), 0o600)).To(Succeed())
	debootstrap(t, g, "sleep "+longest+" & wait")
	build := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	build.Env = append(os.Environ(), asBuilding+"="+cache)
	g.Expect(build.Start()).To(Succeed())
	g.Eventually(sleeping).WithTimeout(time.Minute).Should(HaveLen(1), "the base is being made")
	g.Expect(filepath.Glob(filepath.Join(cache, unfinished+"*/root"))).To(HaveLen(1))

	g.Expect(build.Process.Kill()).To(Succeed())
	g.Expect(build.Wait()).NotTo(Succeed())
	g.Eventually(sleeping).WithTimeout(time.Minute).Should(BeEmpty())
	g.Expect(read(g, "/proc/self/mountinfo")).To(Equal(mounts))

	debootstrap(t, g, "true")
	layer, err := buildBase(t.Context(), cache, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256([]byte(read(g, file)))
	g.Expect(layer).To(Equal(Layer{path: file, digest: hex.EncodeToString(sum[:])}))
	g.Expect(filepath.Glob(filepath.Join(cache, "*"))).To(
		ConsistOf(file, digestFile(file), filepath.Join(cache, "base.lock")), "the killed build's folder is gone")
	g.Expect(read(g, "/proc/self/mountinfo")).To(Equal(mounts))
}

// debootstrap has another be found, which makes and mounts a little, and then does what the test wants.
func debootstrap(t *testing.T, g *WithT, then string) {
	t.Helper()
	folder := t.TempDir()
	script := "#!/bin/sh -e\nfor root; do :; done\nmkdir -p $root/proc\nmount -t proc none $root/proc\n" + then + "\n"
	g.Expect(os.WriteFile(filepath.Join(folder, "debootstrap"), []byte(script), 0o700)).To(Succeed())
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

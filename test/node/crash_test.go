//go:build linux

package node

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/node/inside"
)

// asCrashing has the test's program start a node and wait to be killed: its folder.
const asCrashing = "TIDELINE_TEST_CRASHING_NODE"

// longest is an argument that no other process has.
const longest = "31415926"

// A program that is killed leaves no process, no mount and no interface of its node.
func TestNothingOutlivesAKilledTest(t *testing.T) {
	if err := Missing(); err != nil {
		t.Fatal(err)
	}
	if folder := os.Getenv(asCrashing); folder != "" {
		crash(t, folder)
	}
	g := NewWithT(t)
	mounts, interfaces := read(g, "/proc/self/mountinfo"), read(g, "/proc/self/net/dev")
	folder := t.TempDir()
	test := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	test.Env = append(os.Environ(), asCrashing+"="+folder)
	out, err := test.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(test.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line).To(Equal("started\n"))
	g.Eventually(sleeping).Should(HaveLen(1), "the node runs")
	settingsAreCovered(g)

	g.Expect(test.Process.Kill()).To(Succeed())
	g.Expect(test.Wait()).NotTo(Succeed())
	g.Eventually(sleeping).Should(BeEmpty())
	g.Expect(read(g, "/proc/self/mountinfo")).To(Equal(mounts))
	g.Expect(interfacesOf(read(g, "/proc/self/net/dev"))).To(Equal(interfacesOf(interfaces)))
}

// crash starts a node and waits.
func crash(t *testing.T, folder string) {
	n := sleeper(t, folder)
	_, _ = os.Stdout.WriteString("started\n")
	<-n.ended
	t.Fatal("the node ended: " + read(NewWithT(t), filepath.Join(folder, "nodeinit.log")))
}

// A kubelet that is killed is dead until it is told to run again, and the node goes on; one that ends on its own ends the node.
func TestTheNodeOutlivesAKubeletThatItKills(t *testing.T) {
	if err := Missing(); err != nil {
		t.Fatal(err)
	}
	g := NewWithT(t)
	n := sleeper(t, t.TempDir())
	g.Eventually(sleeping).Should(HaveLen(1), "the node runs")
	g.Expect(n.StartKubelet()).To(MatchError(ContainSubstring(`no program "kubelet" could be started`)))
	for range 2 {
		g.Expect(n.KillKubelet()).To(Succeed())
		g.Expect(sleeping()).To(BeEmpty())
		g.Expect(n.KillKubelet()).To(MatchError(ContainSubstring(`no program "kubelet" runs`)))
		g.Expect(n.StartKubelet()).To(Succeed())
		g.Eventually(sleeping).Should(HaveLen(1))
		g.Expect(n.ended).NotTo(BeClosed())
	}
	processes, err := sleeping()
	g.Expect(err).NotTo(HaveOccurred())
	pid, err := strconv.Atoi(filepath.Base(filepath.Dir(processes[0])))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
	g.Eventually(n.ended).Should(BeClosed())
	g.Expect(read(g, filepath.Join(n.folder, "nodeinit.log"))).To(ContainSubstring("kubelet ended on its own"))
}

// sleeper starts a node whose kubelet sleeps; it ends with the test.
func sleeper(t *testing.T, folder string) *Node {
	g := NewWithT(t)
	config, err := json.Marshal(inside.Config{
		Folder: folder, Bridge: bridge, Address: gateway + "/24", MAC: bridgeMAC, APIServer: "127.0.0.1:6443",
		Serve: []string{kubernetesIP + ":443"}, Socket: filepath.Join(folder, "none.sock"),
		Programs: []inside.Program{{Name: kubelet, Args: []string{"sleep", longest}}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(folder, "node.json")
	g.Expect(os.WriteFile(file, config, 0o600)).To(Succeed())
	n := &Node{folder: folder, ended: make(chan struct{})}
	g.Expect(n.start(t.Context(), file)).To(Succeed())
	return n
}

// settingsAreCovered looks, as the node does, at a setting that a kubelet would change for the whole machine.
func settingsAreCovered(g *WithT) {
	processes, err := sleeping()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(processes).To(HaveLen(1))
	const setting = "/proc/sys/kernel/panic"
	file, err := os.Stat(filepath.Dir(processes[0]) + "/root" + setting)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Size()).To(BeEquivalentTo(len("10\n")), "%s is a file of ours: the kernel's have no size", setting)
}

// sleeping are the processes that the node started.
func sleeping() ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && string(line) == "sleep\x00"+longest+"\x00" {
			found = append(found, file)
		}
	}
	return found, err
}

func read(g *WithT, file string) string {
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// interfacesOf are the names of interfaces in /proc/net/dev.
func interfacesOf(content string) []string {
	var names []string
	for line := range strings.Lines(content) {
		if name, _, found := strings.Cut(line, ":"); found {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

//go:build linux

package node

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kubelet has removed the logs of the first lives of a container that was restarted ten times.
func TestLogsAreThoseOfTheLivesThatAreKept(t *testing.T) {
	g := NewWithT(t)
	n := &Node{folder: t.TempDir()}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train-0", UID: "1"}}
	g.Expect(n.Logs(pod, "trainer")).To(BeEmpty(), "before it ran")

	folder := filepath.Join(n.folder, "pods", "team_train-0_1", "trainer")
	g.Expect(os.MkdirAll(folder, 0o700)).To(Succeed())
	const start = "2026-01-01T00:00:00Z stdout F "
	for name, content := range map[string]string{
		"9.log": start + "stopped by a signal\n", "10.log": start + "resumed\n" + start + "done\n",
	} {
		g.Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
	}
	g.Expect(n.Logs(pod, "trainer")).To(Equal([]string{"stopped by a signal", "resumed", "done"}))
}

func TestLogsOfTheNodeAreKeptWhereTheyAreWanted(t *testing.T) {
	g := NewWithT(t)
	n := &Node{folder: t.TempDir(), logs: t.TempDir()}
	for _, name := range []string{"kubelet.log", "containerd.log", "kubelet.yaml"} {
		g.Expect(os.WriteFile(filepath.Join(n.folder, name), []byte(name), 0o600)).To(Succeed())
	}
	g.Expect(n.keepLogs()).To(Succeed())
	g.Expect(filepath.Glob(filepath.Join(n.logs, "*"))).To(ConsistOf(
		filepath.Join(n.logs, "node-kubelet.log"), filepath.Join(n.logs, "node-containerd.log")))
	g.Expect(read(g, filepath.Join(n.logs, "node-kubelet.log"))).To(Equal("kubelet.log"))
}

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// A command is the localcluster command, with a kubeconfig of its own.
type command struct {
	t          *testing.T
	program    string
	kubeconfig string
	state      string
}

func newCommand(t *testing.T) *command {
	t.Helper()
	dir := t.TempDir()
	c := &command{t: t, program: filepath.Join(dir, "localcluster"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", c.program, "./cmd/localcluster")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if c.state, err = LogDir(c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Down(context.Background(), c.kubeconfig) })
	return c
}

func (c *command) prepare(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	c.t.Cleanup(cancel)
	return exec.CommandContext(ctx, c.program, append(args, "-kubeconfig", c.kubeconfig)...)
}

// run returns what the command printed, and fails the test if it does not end as
// it should.
func (c *command) run(succeeds bool, args ...string) string {
	c.t.Helper()
	out, err := c.prepare(args...).CombinedOutput()
	if (err == nil) != succeeds {
		c.t.Fatalf("localcluster %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (c *command) checkNothingIsLeft() {
	c.t.Helper()
	checkNothingRuns(c.t, c.state)
	for _, path := range []string{c.state, c.kubeconfig} {
		if exists(path) {
			c.t.Errorf("%s is left", path)
		}
	}
}

func (c *command) eventually(what string, check func(context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), eventuallyTimeout)
	defer cancel()
	if err := (&Cluster{state: &stateDir{path: c.state}}).WaitFor(ctx, what, check); err != nil {
		c.t.Fatal(err)
	}
}

func TestUpAndDown(t *testing.T) {
	mayWait(t)
	t.Parallel()
	// What is not in the cache yet would take longer than a command may.
	if err := BuildObjectStore(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	c := newCommand(t)
	out := c.run(true, "up", "-gpu-nodes=3", "-gpus-per-node=1", "-object-store")
	keys := filepath.Join(c.state, "object-store.env")
	for _, want := range []string{"export KUBECONFIG=" + c.kubeconfig, "its address and its keys are in " + keys} {
		if !strings.Contains(out, want) {
			t.Errorf("up does not say %q:\n%s", want, out)
		}
	}
	if content, err := os.ReadFile(keys); !strings.Contains(string(content), "AWS_SECRET_ACCESS_KEY=") {
		t.Errorf("the file with the keys says %q (%v)", content, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 3 {
		t.Errorf("%d nodes (%v), want 3", len(nodes.Items), err)
	}
	if out := c.run(false, "up"); !strings.Contains(out, "already runs") {
		t.Errorf("up beside a running cluster says\n%s", out)
	}
	if out := c.run(true, "down"); !strings.Contains(out, "is gone") {
		t.Errorf("down says\n%s", out)
	}
	c.checkNothingIsLeft()
	if out := c.run(true, "down"); !strings.Contains(out, "No local cluster runs") {
		t.Errorf("down without a cluster says\n%s", out)
	}
}

// When the process that holds the cluster is killed, the kernel ends the others,
// and the next command cleans up.
func TestSupervisorKilled(t *testing.T) {
	mayWait(t)
	t.Parallel()
	c := newCommand(t)
	c.run(true, "up", "-no-volcano")
	if err := syscall.Kill(readOwner(c.state).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.eventually("the processes to be gone", func(context.Context) error { return runningIn(c.state) })
	c.run(true, "down")
	c.checkNothingIsLeft()
}

func TestUpInterrupted(t *testing.T) {
	mayWait(t)
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			c := newCommand(t)
			up := c.prepare("up")
			if err := up.Start(); err != nil {
				t.Fatal(err)
			}
			c.eventually("up to have started the API server", func(context.Context) error {
				_, err := os.Stat(filepath.Join(c.state, "kube-apiserver.log"))
				return err
			})
			if err := up.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := up.Wait(); err == nil {
				t.Error("up says that it succeeded")
			}
			c.eventually("the cluster to be gone", func(context.Context) error {
				if exists(c.state) {
					return fmt.Errorf("%s is left", c.state)
				}
				return nil
			})
			c.checkNothingIsLeft()
		})
	}
}

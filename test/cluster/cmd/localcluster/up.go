package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/tideline-io/tideline/test/cluster"
)

// superviseCommand is what up runs: the process that holds the cluster. Its
// three streams are pipes to up:
//   - stdin: a byte says that up has seen the cluster ready; the end without one
//     says that up is gone, and the cluster must go too.
//   - stdout: a byte says that the cluster is ready.
//   - stderr: progress and the reason of a failure.
const superviseCommand = "supervise"

// up starts a cluster in a process of its own and returns when it is ready.
func up(ctx context.Context, args []string) error {
	o, err := clusterOptions("up", args)
	if err != nil {
		return err
	}
	kubectl, err := cluster.Kubectl(ctx, os.Stderr)
	if err != nil {
		return err
	}
	logs, err := cluster.LogDir(o.Kubeconfig)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	supervisor := exec.Command(self, append([]string{superviseCommand}, args...)...)
	supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C in this terminal is for up
	stdin, stdinErr := supervisor.StdinPipe()
	stdout, stdoutErr := supervisor.StdoutPipe()
	stderr, stderrErr := supervisor.StderrPipe()
	if err := errors.Join(stdinErr, stdoutErr, stderrErr, supervisor.Start()); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = supervisor.Process.Signal(syscall.SIGTERM) })()

	progress := make(chan struct{})
	go func() {
		_, _ = io.Copy(os.Stderr, stderr)
		close(progress)
	}()
	_, err = io.ReadFull(stdout, make([]byte, 1))
	if err == nil && ctx.Err() == nil {
		_, err = stdin.Write([]byte{1})
	}
	if err != nil || ctx.Err() != nil {
		<-progress
		_ = supervisor.Wait()
		return cmp.Or(context.Cause(ctx), errReported)
	}
	end := "make cluster-down"
	if o.Kubeconfig != cluster.DefaultKubeconfig() {
		end += " CLUSTER_KUBECONFIG=" + o.Kubeconfig
	}
	fmt.Printf(`The cluster is ready. To use it:

  export KUBECONFIG=%[1]s
  %[2]s get nodes

The logs of its processes are in %[3]s. To end it:

  %[4]s
`, o.Kubeconfig, kubectl, logs, end)
	if o.objectStore {
		fmt.Printf("\nThe object store runs as well: its address and its keys are in %s.\n", filepath.Join(logs, objectStoreKeys))
	}
	return nil
}

// objectStoreKeys is the file, beside the logs, with the address and the keys of the object store.
const objectStoreKeys = "object-store.env"

// supervise starts a cluster and holds it until it is asked to end.
func supervise(ctx context.Context, args []string) error {
	// up and its terminal go away; writing to them must not end the cluster.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	o, err := clusterOptions(superviseCommand, args)
	if err != nil {
		return err
	}
	o.Log = os.Stderr
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if n, _ := os.Stdin.Read(make([]byte, 1)); n == 0 {
			cancel(errors.New("the command that started the cluster has ended"))
		}
	}()
	c, err := start(ctx, o)
	if err != nil && errors.Is(err, context.Cause(ctx)) {
		return errReported // up says so
	}
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write([]byte{1}); err != nil {
		cancel(err)
	}
	<-ctx.Done()
	return c.Stop()
}

// start starts the cluster and what was asked for besides.
func start(ctx context.Context, o options) (*cluster.Cluster, error) {
	c, err := cluster.Start(ctx, o.Options)
	if err != nil || !o.objectStore {
		return c, err
	}
	store, err := c.StartObjectStore(ctx)
	if err == nil {
		err = store.WriteKeys(filepath.Join(filepath.Dir(store.Directory), objectStoreKeys))
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

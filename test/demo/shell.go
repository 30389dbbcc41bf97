package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tideline-io/tideline/test/testutil"
)

// commandTimeout is generous for a machine that builds something else meanwhile.
const commandTimeout = time.Minute

// shell runs what a user would type at the root of the repository.
type shell struct {
	printer *printer
	root    string
	env     []string
}

// newShell prepares an environment in which kubectl is the given program and talks to the cluster. What kubectl caches goes
// to dir.
func newShell(p *printer, root, dir, kubectl, kubeconfig string) (*shell, error) {
	env, err := testutil.Environment(dir, kubeconfig, kubectl)
	return &shell{printer: p, root: root, env: env}, err
}

// show runs a command and shows it with what it printed.
func (s *shell) show(ctx context.Context, command string) error {
	s.printer.command(command)
	ctx, cancel := context.WithTimeoutCause(ctx, commandTimeout, fmt.Errorf("it did not end within %s", commandTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env = s.root, s.env
	inGroup(cmd)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("run %q: %w", command, context.Cause(ctx))
	}
	s.printer.output(string(out))
	if err != nil {
		return fmt.Errorf("run %q: %w", command, err)
	}
	return nil
}

// inGroup makes a command and its children a process group of their own, which is interrupted as a whole when the command's
// context ends, and does not hear the terminal's Ctrl-C by itself.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second
}

// repository is the root of the source tree around the working directory.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tideline-io/tideline").Output()
	if err != nil {
		return "", fmt.Errorf("find the source tree of Tideline (run the demo inside of it, with go on PATH): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// buildOperator builds the operator into dir and returns the program's path.
func buildOperator(ctx context.Context, root, dir string, progress io.Writer) (string, error) {
	_, _ = fmt.Fprint(progress, "building the operator ... ")
	began := time.Now()
	program := filepath.Join(dir, "tideline")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, ".")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOTMPDIR="+dir) // an interrupted go leaves its work folder
	inGroup(cmd)
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(progress)
		return "", context.Cause(ctx)
	case err != nil:
		_, _ = fmt.Fprintln(progress, "failed")
		return "", fmt.Errorf("build the operator: %w\n%s", err, out)
	}
	_, _ = fmt.Fprintf(progress, "done in %s\n", seconds(time.Since(began)))
	return program, nil
}

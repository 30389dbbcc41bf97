// Package scheduler runs sessions of Volcano's own scheduler over simulated objects, for benchmarks that play a cluster.
package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ours is the configuration of config/volcano, and stock the one of Volcano's own chart.
	ours  = "config/volcano/volcano-scheduler.conf"
	stock = "installer/helm/chart/volcano/config/volcano-scheduler.conf"

	program = "test/perf/scheduler/volcano"
	amend   = "test/cluster/modules/volcano-1.15.1/amend"
	amended = "volcano.sh/apis"
)

// Question and Answer are what the program volcano reads and writes: see its types.
type Question struct {
	Nodes      []*corev1.Node                `json:"nodes,omitempty"`
	Queues     []client.Object               `json:"queues,omitempty"`
	Classes    []*schedulingv1.PriorityClass `json:"classes,omitempty"`
	Groups     []client.Object               `json:"groups,omitempty"`
	Pods       []*corev1.Pod                 `json:"pods,omitempty"`
	Gone       []string                      `json:"gone,omitempty"`
	GoneGroups []string                      `json:"goneGroups,omitempty"`
}

// Answer is what a session decided, by namespace/name of pods: the node of each that got one, and those that are to leave.
type Answer struct {
	Binds  map[string]string `json:"binds"`
	Evicts []string          `json:"evicts"`
}

// Program is Volcano's scheduler, built.
type Program struct {
	path string
	// Ours and Stock are paths of configurations: the one that Tideline ships, and the one of Volcano's own chart.
	Ours, Stock string
}

// Session is a running scheduler.
type Session struct {
	command *exec.Cmd
	in      io.WriteCloser
	to      *json.Encoder
	from    *json.Decoder
}

// Start runs the program with the configuration at a path.
func (p *Program) Start(ctx context.Context, configuration string) (*Session, error) {
	v := &Session{command: exec.CommandContext(ctx, p.path, configuration)}
	in, err := v.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := v.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	v.in, v.to, v.from = in, json.NewEncoder(in), json.NewDecoder(out)
	return v, v.command.Start()
}

// Ask tells what changed, and runs a session.
func (v *Session) Ask(q *Question) (*Answer, error) {
	if err := v.to.Encode(q); err != nil {
		return nil, fmt.Errorf("ask Volcano: %w", err)
	}
	a := &Answer{}
	if err := v.from.Decode(a); err != nil {
		return nil, fmt.Errorf("hear Volcano: %w", err)
	}
	return a, nil
}

// Kill ends the program at once, because of an error that says more than how it ends.
func (v *Session) Kill() {
	_ = v.command.Process.Kill()
	_ = v.command.Wait()
}

// Stop has the program end.
func (v *Session) Stop() error { return errors.Join(v.in.Close(), v.command.Wait()) }

// Build builds the program into a folder. It adds to a copy of a module what no proxy serves of it, as the local cluster does.
// The working directory must be the repository.
func Build(ctx context.Context, folder string) (*Program, error) {
	source, goMod := filepath.Join(folder, "apis"), filepath.Join(folder, "go.mod")
	if err := copyAmended(ctx, source); err != nil {
		return nil, err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(program, name))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	p := &Program{path: filepath.Join(folder, "volcano"), Ours: ours}
	if _, err := goCommand(ctx, "mod", "edit", "-replace="+amended+"="+source, goMod); err != nil {
		return nil, err
	}
	// Without paths of folders in it, Go knows what it built of a copy in another folder: else each start takes minutes.
	if _, err := goCommand(ctx, "build", "-trimpath", "-modfile="+goMod, "-o", p.path, "."); err != nil {
		return nil, err
	}
	module, err := goCommand(ctx, "list", "-m", "-modfile="+goMod, "-f", "{{.Dir}}", "volcano.sh/volcano")
	p.Stock = filepath.Join(strings.TrimSpace(module), stock)
	return p, err
}

// BuildAside builds the program into a folder of its own, which done removes.
func BuildAside(ctx context.Context) (p *Program, done func(), err error) {
	folder, err := os.MkdirTemp("", "volcano")
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = os.RemoveAll(folder) }
	if p, err = Build(ctx, folder); err != nil {
		done()
	}
	return p, done, err
}

func copyAmended(ctx context.Context, to string) error {
	served, err := goCommand(ctx, "mod", "download", "-json", amended)
	if err != nil {
		return err
	}
	var at struct{ Dir string }
	if err := json.Unmarshal([]byte(served), &at); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	for _, from := range []string{at.Dir, amend} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			return err
		}
	}
	return nil
}

// goCommand runs the go command in the folder of the program, and returns what it prints.
func goCommand(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = program
	var problem strings.Builder
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, problem.String())
	}
	return string(out), nil
}

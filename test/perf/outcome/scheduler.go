package main

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
	// ours and stock are the configurations of Volcano: that of config/volcano, and the one that Volcano's chart has.
	ours  = "config/volcano/volcano-scheduler.conf"
	stock = "installer/helm/chart/volcano/config/volcano-scheduler.conf"

	program = "test/perf/outcome/volcano"
	amend   = "test/cluster/modules/volcano-1.15.1/amend"
	amended = "volcano.sh/apis"
)

// question and answer are what the program volcano reads and writes: see its types.
type question struct {
	Nodes      []*corev1.Node                `json:"nodes,omitempty"`
	Queues     []client.Object               `json:"queues,omitempty"`
	Classes    []*schedulingv1.PriorityClass `json:"classes,omitempty"`
	Groups     []client.Object               `json:"groups,omitempty"`
	Pods       []*corev1.Pod                 `json:"pods,omitempty"`
	Gone       []string                      `json:"gone,omitempty"`
	GoneGroups []string                      `json:"goneGroups,omitempty"`
}

type answer struct {
	Binds  map[string]string `json:"binds"`
	Evicts []string          `json:"evicts"`
}

// volcano is a running scheduler.
type volcano struct {
	command *exec.Cmd
	in      io.WriteCloser
	to      *json.Encoder
	from    *json.Decoder
}

func startVolcano(ctx context.Context, path, configuration string) (*volcano, error) {
	v := &volcano{command: exec.CommandContext(ctx, path, configuration)}
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

// ask tells what changed, and runs a session.
func (v *volcano) ask(q *question) (*answer, error) {
	if err := v.to.Encode(q); err != nil {
		return nil, fmt.Errorf("ask Volcano: %w", err)
	}
	a := &answer{}
	if err := v.from.Decode(a); err != nil {
		return nil, fmt.Errorf("hear Volcano: %w", err)
	}
	return a, nil
}

// kill ends the program at once, because of an error that says more than how it ends.
func (v *volcano) kill() {
	_ = v.command.Process.Kill()
	_ = v.command.Wait()
}

func (v *volcano) stop() error { return errors.Join(v.in.Close(), v.command.Wait()) }

// buildVolcano builds the program into a folder, and returns its path and that of Volcano's module. It adds to a copy of a module
// what no proxy serves of it, as the local cluster does.
func buildVolcano(ctx context.Context, folder string) (path, module string, err error) {
	served, err := goCommand(ctx, "mod", "download", "-json", amended)
	if err != nil {
		return "", "", err
	}
	var at struct{ Dir string }
	if err := json.Unmarshal([]byte(served), &at); err != nil {
		return "", "", err
	}
	source := filepath.Join(folder, "apis")
	if err := os.RemoveAll(source); err != nil {
		return "", "", err
	}
	for _, from := range []string{at.Dir, amend} {
		if err := os.CopyFS(source, os.DirFS(from)); err != nil {
			return "", "", err
		}
	}
	goMod := filepath.Join(folder, "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(program, name))
		if err != nil {
			return "", "", err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return "", "", err
		}
	}
	path = filepath.Join(folder, "volcano")
	if _, err := goCommand(ctx, "mod", "edit", "-replace="+amended+"="+source, goMod); err != nil {
		return "", "", err
	}
	if _, err := goCommand(ctx, "build", "-modfile="+goMod, "-o", path, "."); err != nil {
		return "", "", err
	}
	module, err = goCommand(ctx, "list", "-m", "-modfile="+goMod, "-f", "{{.Dir}}", "volcano.sh/volcano")
	return path, strings.TrimSpace(module), err
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

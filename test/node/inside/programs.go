//go:build linux

package inside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// Order is what process 1 is told on its standard input, as JSON. It answers each with a JSON string: why it could not do that,
// or nothing.
type Order struct {
	// Kill names a program that ends by SIGKILL. The node goes on, and the answer comes when the program has ended.
	Kill string `json:",omitempty"`
	// Start names a program that was killed and runs again, or one that is to start now.
	Start string `json:",omitempty"`
}

// supervisor starts the programs of a node, and ends the node when one ends that it did not kill.
type supervisor struct {
	config  *Config
	running map[string]*program
	ended   chan error
}

// program is one that runs.
type program struct {
	cmd    *exec.Cmd
	killed atomic.Bool
	gone   chan struct{} // closed when it has ended after it was killed
}

// obey does what it is ordered until the orders end.
func (s *supervisor) obey(ctx context.Context, orders io.Reader, answers io.Writer) error {
	from, to := json.NewDecoder(orders), json.NewEncoder(answers)
	for {
		order := Order{}
		if err := from.Decode(&order); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		answer := ""
		if err := s.do(ctx, order); err != nil {
			answer = err.Error()
		}
		if err := to.Encode(answer); err != nil {
			return err
		}
	}
}

func (s *supervisor) do(ctx context.Context, order Order) error {
	if order.Kill != "" {
		return s.kill(order.Kill)
	}
	i := slices.IndexFunc(s.config.Programs, func(p Program) bool { return p.Name == order.Start })
	if i < 0 || s.running[order.Start] != nil {
		return fmt.Errorf("no program %q could be started", order.Start)
	}
	return s.start(ctx, s.config.Programs[i])
}

func (s *supervisor) kill(name string) error {
	p := s.running[name]
	if p == nil {
		return fmt.Errorf("no program %q runs", name)
	}
	p.killed.Store(true)
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.gone
	delete(s.running, name)
	return nil
}

// start starts a program. Its log is beside those of the others.
func (s *supervisor) start(ctx context.Context, about Program) error {
	folder := s.config.Folder
	log, err := os.OpenFile(filepath.Join(folder, about.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	p := &program{cmd: exec.CommandContext(ctx, about.Args[0], about.Args[1:]...), gone: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = folder, log, log
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", about.Name, err)
	}
	s.running[about.Name] = p
	go func() {
		err := p.cmd.Wait()
		if p.killed.Load() {
			close(p.gone)
			return
		}
		s.ended <- errors.Join(fmt.Errorf("%s ended on its own: see its log", about.Name), err)
	}()
	return nil
}

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Process is one running program of the cluster.
type Process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	env     []string // what StartProcess was given

	done chan struct{} // closed when the process has ended
	err  error         // how it ended; read after done

	mu       sync.Mutex
	stopping bool
}

// spawner runs functions on one OS thread that lives as long as the program. A
// child gets its parent-death signal when the thread that started it ends, and
// Go ends threads at will.
var spawner = sync.OnceValue(func() chan<- func() {
	start := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range start {
			f()
		}
	}()
	return start
})

// StartProcess starts the program in a working folder of its own below dir, with
// an environment that says nothing about this machine or another cluster, but for
// how often garbage is collected and further variables. What it prints is appended
// to dir/name.log.
func StartProcess(dir, name, program string, args []string, env ...string) (*Process, error) {
	work := filepath.Join(dir, name)
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	p := &Process{name: name, logPath: work + ".log", env: env, done: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()

	p.cmd = exec.Command(program, args...)
	p.cmd.Dir = work
	p.cmd.Env = append([]string{
		"HOME=" + work,
		"TMPDIR=" + work,
		"PATH=" + os.Getenv("PATH"),
		"DEBUG_SOCKET_DIR=.", // where Volcano listens for log levels; relative, as socket paths are short
	}, env...)
	// Suites say that for all that they start: an API server spends much of its time on it.
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if value, set := os.LookupEnv(name); set {
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	spawner() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Stop asks the process to end, kills it when it has not soon, and returns when it
// is gone.
func (p *Process) Stop() { p.stop(stopGrace) }

// stop asks the process to end, kills it when it has not within grace, and
// returns when it is gone.
func (p *Process) stop(grace time.Duration) {
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Failure returns an error when the process has ended without being asked to.
func (p *Process) Failure() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return nil
	}
	status := "exit status 0"
	if p.err != nil {
		status = p.err.Error()
	}
	return fmt.Errorf("%s ended on its own (%s); the last lines of %s:\n%s", p.name, status, p.logPath, p.lastLog())
}

// PortTaken reports whether the process ended because another program took a
// port between the moment it was found free and the moment the process listened.
func (p *Process) PortTaken() bool {
	return p.Failure() != nil && bytes.Contains(p.lastLog(), []byte("address already in use"))
}

// lastLog returns the end of the process's log, long lines cut.
func (p *Process) lastLog() []byte {
	const maxBytes, maxLines, maxLine = 32 << 10, 12, 400
	f, err := os.Open(p.logPath)
	if err != nil {
		return []byte(err.Error())
	}
	defer func() { _ = f.Close() }()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-maxBytes), io.SeekStart)
	}
	tail, _ := io.ReadAll(f)
	var out []string
	for line := range strings.Lines(string(lastLines(tail, maxLines))) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) > maxLine {
			line = line[:maxLine] + "..."
		}
		out = append(out, "  "+line)
	}
	return []byte(strings.Join(out, "\n"))
}

// Ports are taken from below those that Linux and macOS give to outgoing connections
// (net.ipv4.ip_local_port_range begins at 32768). Otherwise one of these may have a
// free port before the program listens for which it was chosen.
const (
	firstPort = 20_000
	portRange = 12_000
)

// FreePorts returns n different ports of the loopback interface on which nobody
// listens now, from 20000 to 31999.
func FreePorts(n int) ([]int, error) {
	var ports []int
	var listeners []net.Listener
	var refused error
	for tries := 0; len(ports) < n && tries < 100+10*n; tries++ {
		port := firstPort + rand.IntN(portRange)
		l, err := net.Listen("tcp", Address(port))
		if err != nil {
			refused = err
			continue
		}
		listeners = append(listeners, l)
		ports = append(ports, port)
	}
	var err error
	if len(ports) < n {
		err = refused
	}
	// Closed at the end only: a port that is held is not handed out twice.
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("looking for %d free ports: %w", n, err)
	}
	return ports, nil
}

// Address is that of a port of the loopback interface.
func Address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

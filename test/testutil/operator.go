package testutil

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// OperatorOptions say how to start the operator.
type OperatorOptions struct {
	// Program is the operator, as BuildOperator returned it.
	Program string
	// Kubeconfig tells the operator its API server and who it is.
	Kubeconfig string
	// Log is the file to which the operator's log is appended.
	Log string
	// Args are further flags; a flag given twice counts as given last.
	Args []string
	// Former starts a version that had no command `run`.
	Former bool
	// Env are further variables, as NAME=value.
	Env []string
	// Kinds that it reconciles, in lower case. Default: all of this version.
	Kinds []string
	// Bare starts it without the flags that every suite gives it, and without the variables of the test.
	Bare bool
	// Patience is how long it may take until it reconciles. Default: a minute.
	Patience time.Duration
}

// Operator is the operator as a process, started anew as often as a test likes.
type Operator struct {
	options OperatorOptions
	current *program // nil before the first start
	// began is the size of the log when the current process was started.
	began int64
}

// Defaults of every suite: no ports and no webhooks, so that operators run side by side, and a forced look at every object every
// few seconds, which must not cause a write. No Lease either: one that is killed would keep the next waiting for 15 s. Suites
// about leaders turn it on again.
var operatorFlags = []string{
	"--health-probe-bind-address=0", "--metrics-bind-address=0", "--webhooks=false", "--resync-period=5s", "--leader-elect=false",
}

// BuildOperator builds the operator with the race detector into dir, and returns the program's path. Without a C compiler,
// which the race detector needs, it builds without. The source tree is the one around the working directory. If test/run.sh has
// built the operator for all of its suites, that program is it.
func BuildOperator(ctx context.Context, dir string) (string, error) {
	if built := os.Getenv(operatorVariable); built != "" {
		return built, nil
	}
	return BuildOperatorOf(ctx, "", dir)
}

// operatorVariable names the operator that test/run.sh has built once for all suites.
const operatorVariable = "TIDELINE_TEST_OPERATOR"

// BuildOperatorOf is BuildOperator for the source tree around root.
func BuildOperatorOf(ctx context.Context, root, dir string) (string, error) {
	return buildOperator(ctx, root, filepath.Join(dir, "tideline"))
}

// buildOperator builds the operator as the file target, with further flags of go build.
func buildOperator(ctx context.Context, root, target string, flags ...string) (string, error) {
	args := slices.Concat([]string{"build", "-buildvcs=false", "-o", target}, flags)
	if cgo, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED").Output(); err == nil && bytes.HasPrefix(cgo, []byte("1")) {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, rootPackage)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the operator: %w\n%s", err, out)
	}
	return target, nil
}

// NewOperator is an operator that does not run yet.
func NewOperator(o OperatorOptions) *Operator { return &Operator{options: o} }

// StartOperator starts the operator and returns when it reconciles.
func StartOperator(ctx context.Context, o OperatorOptions) (*Operator, error) {
	operator := NewOperator(o)
	return operator, operator.Start(ctx)
}

// Start starts the operator after Kill or Stop, and returns when it reconciles.
func (o *Operator) Start(ctx context.Context) error {
	if err := o.Launch(ctx); err != nil {
		return err
	}
	return o.AwaitReady(ctx)
}

// AddFlags has the operator started with further flags from its next start on.
func (o *Operator) AddFlags(flags ...string) { o.options.Args = append(o.options.Args, flags...) }

// Launch starts the operator and returns at once.
func (o *Operator) Launch(ctx context.Context) error {
	log, err := os.OpenFile(o.options.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	o.began = info.Size()
	flags, env := operatorFlags, os.Environ()
	if o.options.Bare {
		flags, env = nil, nil
	}
	command := []string{"run"}
	if o.options.Former {
		command = nil
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), o.options.Program, slices.Concat(command, flags, o.options.Args)...)
	cmd.Env = slices.Concat(env, []string{"KUBECONFIG=" + o.options.Kubeconfig}, o.options.Env)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := start(cmd)
	if err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	o.current = p
	return nil
}

// kinds are those that this version reconciles.
var kinds = []string{"costreport", "elastictrainingjob", "mergejob", "resourcequotaprofile"}

// reconciles tells of an operator with that log whether it reconciles every kind.
func (o *Operator) reconciles(log []byte) bool {
	all := o.options.Kinds
	if all == nil {
		all = kinds
	}
	return !slices.ContainsFunc(all, func(kind string) bool {
		return !bytes.Contains(log, fmt.Appendf(nil, `"logger":%q,"msg":"Starting workers"`, kind))
	})
}

// AwaitReady waits until the operator's caches are filled and its workers started.
func (o *Operator) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.options.Patience, time.Minute))
	defer cancel()
	for {
		log, err := o.currentLog()
		if err != nil {
			return err
		}
		if o.reconciles(log) {
			return nil
		}
		select {
		case <-o.current.done:
			return fmt.Errorf("the operator ended before it was ready: %w\n%s", o.current.failure(), log)
		case <-ctx.Done():
			return fmt.Errorf("the operator is not ready (%w):\n%s", ctx.Err(), log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Kill ends the operator as a crash of its node does, and returns when it is gone.
func (o *Operator) Kill() {
	if o.current == nil {
		return
	}
	_ = o.current.cmd.Process.Kill()
	<-o.current.done
}

// Pause holds the operator's process where it is, as a node that hangs does, until Resume or Kill.
func (o *Operator) Pause() { _ = o.current.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets the operator go on after Pause.
func (o *Operator) Resume() { _ = o.current.cmd.Process.Signal(syscall.SIGCONT) }

// Stop asks the operator to end, as a rollout does. It returns an error if the operator had ended before, if it does not end
// in time or reports a failure.
func (o *Operator) Stop() error {
	if ended := o.Ended(); ended != nil {
		return ended
	}
	_ = o.current.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.current.done:
		return o.current.err
	case <-time.After(30 * time.Second):
	}
	_ = o.current.cmd.Process.Signal(syscall.SIGQUIT) // It writes down what it does.
	select {
	case <-o.current.done:
	case <-time.After(10 * time.Second):
		o.Kill()
	}
	return errors.New("the operator did not end within 30 s of SIGTERM: what it did then is at the end of its log")
}

// Ended is an error while the operator does not run.
func (o *Operator) Ended() error {
	if o.current == nil {
		return errors.New("the operator was never started")
	}
	select {
	case <-o.current.done:
		return fmt.Errorf("the operator has ended: %w", o.current.failure())
	default:
		return nil
	}
}

// Process is the id of the current process.
func (o *Operator) Process() int { return o.current.cmd.Process.Pid }

// Done is closed when the current process has ended.
func (o *Operator) Done() <-chan struct{} { return o.current.done }

// Log is all that the operator has logged, over all its starts.
func (o *Operator) Log() ([]byte, error) { return os.ReadFile(o.options.Log) }

// currentLog is what the current process has logged.
func (o *Operator) currentLog() ([]byte, error) {
	log, err := o.Log()
	if err != nil {
		return nil, err
	}
	return log[min(o.began, int64(len(log))):], nil
}

// misbehavior is what must never be in the log: data races, panics, and requests beyond the operator's role.
var misbehavior = regexp.MustCompile(`DATA RACE|panic|is forbidden: User `)

// Misbehavior returns an error that quotes the first thing in the log that must never be there.
func (o *Operator) Misbehavior() error {
	log, err := o.Log()
	if err != nil {
		return err
	}
	found := misbehavior.FindIndex(log)
	if found == nil {
		return nil
	}
	from := bytes.LastIndexByte(log[:found[0]], '\n') + 1
	return fmt.Errorf("the operator's log %s has:\n%s", o.options.Log, log[from:min(found[0]+4000, len(log))])
}

// A program is a process that dies with this one.
type program struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; read after done
}

// failure is how a process that should have gone on ended.
func (p *program) failure() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// start starts the command on a thread of its own, which lives as long as the process does: a child gets its parent-death
// signal when the thread that started it ends, and Go ends threads at will.
func start(cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd, done: make(chan struct{})}
	cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // without unlocking: the thread ends with this function
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

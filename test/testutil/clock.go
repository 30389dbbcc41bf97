package testutil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// clockVariable names the file that says how far an operator's clock is ahead, to one that BuildSettableOperator built.
const clockVariable = "TIDELINE_TEST_CLOCK"

// ErrClockNotSettable is for a machine on which no operator's clock can be set.
var ErrClockNotSettable = errors.New("an operator's clock can be set on linux/amd64 only")

// BuildSettableOperator builds the operator into dir as BuildOperator does, with a wall clock that a test can set: see Clock.
// What sets it is in testdata/clock, which the build lays over package main. Nothing of that is in the program that users run.
// It takes as long as linking does.
func BuildSettableOperator(ctx context.Context, dir string) (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", ErrClockNotSettable
	}
	root, err := FindRepository(ctx)
	if err != nil {
		return "", err
	}
	laid := map[string]string{}
	for _, name := range []string{"clock.go", "clock_amd64.s"} {
		laid[filepath.Join(root, "settable_"+name)] = filepath.Join(root, "test", "testutil", "testdata", "clock", name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": laid})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	// The linker refuses references to what is the runtime's own.
	return buildOperator(ctx, root, filepath.Join(dir, "tideline-settable"), "-overlay="+file, "-ldflags=-w -checklinkname=0")
}

// Clock is that of the node of one operator, which must be a settable one.
type Clock struct{ file string }

// NewClock returns a clock that is right. It is kept in file, so that it stays as it was set when the operator is started anew.
func NewClock(file string) (*Clock, error) {
	return &Clock{file: file}, os.WriteFile(file, []byte("0s"), 0o600)
}

// Variable tells an operator of the clock: it is for OperatorOptions.Env.
func (c *Clock) Variable() string { return clockVariable + "=" + c.file }

// Set has the clock be so far ahead of all others, in whole seconds; less than 0 for behind. The operator, which must run, says
// so in its log soon.
func (c *Clock) Set(o *Operator, ahead time.Duration) error {
	if err := os.WriteFile(c.file, []byte(ahead.String()), 0o600); err != nil {
		return err
	}
	return o.current.cmd.Process.Signal(syscall.SIGUSR1)
}

// Says is what an operator logs whose clock is so far ahead.
func (*Clock) Says(ahead time.Duration) string {
	return fmt.Sprintf("The clock of this node is %s ahead.", ahead)
}

package testutil

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// Doctor runs `tideline doctor` as an admin, and returns what it printed and its exit code.
func (in *Installation) Doctor(ctx context.Context) (said string, code int, err error) {
	return in.command(ctx, "doctor")
}

// Approve runs `tideline approve` as an admin, and returns what it printed and its exit code.
func (in *Installation) Approve(ctx context.Context, args ...string) (said string, code int, err error) {
	return in.command(ctx, append([]string{"approve"}, args...)...)
}

// Sizing runs `tideline sizing` where the operator runs, and returns what it printed and its exit code.
func (in *Installation) Sizing(ctx context.Context, args ...string) (said string, code int, err error) {
	return in.command(ctx, append([]string{"sizing"}, args...)...)
}

// Why runs `tideline why` where the operator runs, and returns what it printed and its exit code.
func (in *Installation) Why(ctx context.Context, args ...string) (said string, code int, err error) {
	return in.command(ctx, append([]string{"why"}, args...)...)
}

// command runs a command of the program as an admin.
func (in *Installation) command(ctx context.Context, args ...string) (said string, code int, err error) {
	cmd := exec.CommandContext(ctx, in.program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+in.Kubeconfig)
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return string(out) + string(ended.Stderr), ended.ExitCode(), nil
	}
	return string(out), 0, err
}

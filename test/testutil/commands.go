package testutil

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// Command runs a command of the program where the operator runs, as an admin, such as doctor or why, and returns what it printed
// and its exit code.
func (in *Installation) Command(ctx context.Context, args ...string) (said string, code int, err error) {
	cmd := exec.CommandContext(ctx, in.program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+in.Kubeconfig)
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return string(out) + string(ended.Stderr), ended.ExitCode(), nil
	}
	return string(out), 0, err
}

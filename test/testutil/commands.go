package testutil

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// Doctor runs `tideline doctor` as an admin, and returns what it printed on standard output and its exit code.
func (in *Installation) Doctor(ctx context.Context) (said string, code int, err error) {
	cmd := exec.CommandContext(ctx, in.program, "doctor")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+in.Kubeconfig)
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return string(out) + string(ended.Stderr), ended.ExitCode(), nil
	}
	return string(out), 0, err
}

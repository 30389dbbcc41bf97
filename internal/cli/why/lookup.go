// Package why are the commands that say why: of now, from the objects of the cluster, and of the past, from the ledger, where the
// operator's configuration and its ledger are, which is in its pod.
package why

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// timeout bounds a question.
const timeout = time.Minute

// DefaultConfig is where the operator's pod has its configuration.
const DefaultConfig = "/etc/tideline/configuration.yaml"

// Open opens the ledger that a configuration names.
type Open func(context.Context, config.Ledger) (*ledger.Ledger, error)

// openKept opens a ledger that is there.
func openKept(ctx context.Context, at config.Ledger, open Open) (*ledger.Ledger, error) {
	if !at.IsConfigured() {
		return nil, errors.New("the configuration names no ledger (ledger.file, ledger.postgresDSNFile), so that nothing is kept")
	}
	if file := at.File; file != "" {
		// It would be created, empty, by whoever looks.
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("there is no ledger here (ledger.file), run the command where the operator runs: %w", err)
		}
	}
	return open(ctx, at)
}

// configuration reads the operator's.
func configuration(path string) (*config.Configuration, error) {
	if path == "" {
		return nil, cli.Usagef("--config: name the file with the operator's configuration")
	}
	cfg, err := cli.ReadConfiguration(path)
	if path == DefaultConfig && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; run the command where the operator runs, by kubectl exec, as -h shows", err)
	}
	return cfg, err
}

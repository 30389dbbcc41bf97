package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// DefaultConfig is where the operator's pod has its configuration.
const DefaultConfig = "/etc/tideline/configuration.yaml"

// OpenLedger opens the ledger that a configuration names: to read it, or to write to it, and then it is made if there is none.
type OpenLedger func(context.Context, config.Ledger) (*ledger.Ledger, error)

// OpenNamed opens the ledger of a configuration that names one.
func (open OpenLedger) OpenNamed(ctx context.Context, at config.Ledger) (*ledger.Ledger, error) {
	if !at.IsConfigured() {
		return nil, errors.New("the configuration names no ledger (ledger.file, ledger.postgresDSNFile), so that nothing is kept")
	}
	return open(ctx, at)
}

// OpenKept opens a ledger that is there.
func (open OpenLedger) OpenKept(ctx context.Context, at config.Ledger) (*ledger.Ledger, error) {
	if file := at.File; file != "" {
		// It would be created, empty, by whoever looks.
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("there is no ledger here (ledger.file), run the command where the operator runs: %w", err)
		}
	}
	return open.OpenNamed(ctx, at)
}

// ReadOperatorConfiguration reads the file that flag --config names, by default that of the operator's pod.
func ReadOperatorConfiguration(path string) (*config.Configuration, error) {
	if path == "" {
		return nil, Usagef("--config: name the file with the operator's configuration")
	}
	cfg, err := ReadConfiguration(path)
	if path == DefaultConfig && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; run the command where the operator runs, by kubectl exec, as -h shows", err)
	}
	return cfg, err
}

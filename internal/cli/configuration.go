package cli

import (
	"flag"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// AddConfiguration adds --config and the flags that override fields of the operator's configuration. What it returns reads them
// once the command runs: flags go before the file, and the file before defaults. Its error has one sentence a line.
func AddConfiguration(cmd *cobra.Command) (read func() (*config.Configuration, error)) {
	file := cmd.Flags().String("config", "",
		"`FILE` with the operator's configuration (docs/configuration.md); flags that are given go before it")
	known := flag.NewFlagSet("", flag.ContinueOnError)
	config.DefaultConfiguration().AddFlags(known)
	cmd.Flags().AddGoFlagSet(known)
	return func() (*config.Configuration, error) {
		cfg, err := ReadConfiguration(*file)
		if err != nil {
			return nil, err
		}
		cmd.Flags().Visit(func(f *pflag.Flag) {
			if known.Lookup(f.Name) != nil {
				_ = known.Set(f.Name, f.Value.String()) // It has been taken, by the other flag set, which notes what was given.
			}
		})
		return cfg, cfg.OverrideByFlags(known)
	}
}

// ReadConfiguration reads a file; without one, everything has its default.
func ReadConfiguration(file string) (*config.Configuration, error) {
	if file == "" {
		return config.DefaultConfiguration(), nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the operator's configuration (--config): %w", err)
	}
	return config.Load(file, content)
}

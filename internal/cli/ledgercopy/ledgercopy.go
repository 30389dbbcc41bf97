// Package ledgercopy is the command that backs up and restores the ledger, where the operator's configuration and its ledger are,
// which is in its pod.
package ledgercopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const (
	backUpLong = `Writes all that the ledger has, as it is at one moment, to a file, or without one to standard output. The operator
goes on to write meanwhile. The ledger may be in SQLite or PostgreSQL; a backup of one restores the other too.

Exit code: 0 when the backup is whole; 1 when it is not; 2 when the command is wrong.`
	restoreLong = `Puts a backup in place of what the ledger has: all of it or, if anything is wrong, nothing. FILE - is standard
input. A ledger that has entries is refused without --replace, which deletes them. Restart the operator afterwards: it then
records how pods ended that the backup has as running.

Exit code: 0 when the ledger has what the backup has; 1 when it is as before; 2 when the command is wrong.`
)

// Command is `tideline ledger`. Read opens a ledger to read it, and open one to write.
func Command(read, open cli.OpenLedger) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ledger",
		Short:   "Back up and restore the ledger",
		Long:    "Backs up and restores the ledger of the operator's configuration, so it runs where the operator runs.",
		Example: "  tideline ledger backup -h",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("%q is not what is done with a ledger: backup or restore", args[0])
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(backUpCommand(read), restoreCommand(open))
	return cli.ForClusters(cmd)
}

func backUpCommand(read cli.OpenLedger) *cobra.Command {
	var configuration string
	cmd := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Write all that the ledger has to a file",
		Long:  backUpLong,
		Example: `  kubectl exec -n tideline-system deploy/tideline-controller-manager -- /tideline ledger backup > ledger.backup
  tideline ledger backup --config configuration.yaml ledger.backup`,
		Args: oneFile(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd.Context(), configuration, read.OpenKept, func(l *ledger.Ledger) error {
				var rows int64
				var err error
				to := "standard output"
				if len(args) == 0 || args[0] == "-" {
					rows, err = l.WriteBackup(cmd.Context(), cmd.OutOrStdout())
				} else {
					to = args[0]
					rows, err = backUpTo(cmd.Context(), l, to)
				}
				if err != nil {
					return err
				}
				cli.Tell(cmd.ErrOrStderr(), fmt.Sprintf("Backed up %d rows to %s.\n", rows, to))
				return nil
			})
		},
	}
	addConfig(cmd, &configuration)
	return cmd
}

// backUpTo writes a file that has its name once it is whole. Names of people are in it.
func backUpTo(ctx context.Context, l *ledger.Ledger, path string) (rows int64, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	rows, err = l.WriteBackup(ctx, file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	return rows, err
}

func restoreCommand(open cli.OpenLedger) *cobra.Command {
	var configuration string
	var replace bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in place of what the ledger has",
		Long:  restoreLong,
		Example: `  kubectl exec -i -n tideline-system deploy/tideline-controller-manager -- \
    /tideline ledger restore --replace - < ledger.backup
  kubectl rollout restart -n tideline-system deploy/tideline-controller-manager`,
		Args: oneFile(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from := cmd.InOrStdin()
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer func() { _ = file.Close() }()
				from = file
			}
			return with(cmd.Context(), configuration, open.OpenNamed, func(l *ledger.Ledger) error {
				return restoreFrom(cmd, l, from, replace)
			})
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "delete what the ledger has")
	addConfig(cmd, &configuration)
	return cmd
}

func restoreFrom(cmd *cobra.Command, l *ledger.Ledger, from io.Reader, replace bool) error {
	rows, err := l.Restore(cmd.Context(), from, replace)
	if errors.Is(err, ledger.ErrNotEmpty) {
		return fmt.Errorf("%w: back it up, and give --replace", err)
	}
	if err != nil {
		return err
	}
	cli.Tell(cmd.ErrOrStderr(), fmt.Sprintf(
		"Restored %d rows. Restart the operator, so that it records how pods ended meanwhile.\n", rows))
	return nil
}

// with opens the ledger of a configuration, and closes it.
func with(ctx context.Context, configuration string, open cli.OpenLedger, do func(*ledger.Ledger) error) error {
	cfg, err := cli.ReadOperatorConfiguration(configuration)
	if err != nil {
		return err
	}
	l, err := open(ctx, cfg.Ledger)
	if err != nil {
		return err
	}
	return errors.Join(do(l), l.Close())
}

// oneFile is for commands that take the name of a file, or from least none.
func oneFile(least int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > 1 {
			return cli.Usagef("name one file, or - for standard input or output")
		}
		return nil
	}
}

func addConfig(cmd *cobra.Command, configuration *string) {
	cmd.Flags().StringVar(configuration, "config", cli.DefaultConfig,
		"`FILE` with the operator's configuration, which names the ledger")
}

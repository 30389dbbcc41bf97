// Package why are the commands that answer from the ledger: they run where the operator's configuration and its ledger are,
// which is in its pod.
package why

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// Exit codes, beside 0 for an answer.
const (
	exitUnknown = 1
	exitUsage   = 2
)

// timeout bounds a question.
const timeout = time.Minute

// DefaultConfig is where the operator's pod has its configuration.
const DefaultConfig = "/etc/tideline/configuration.yaml"

// Open opens the ledger that a configuration names.
type Open func(context.Context, config.Ledger) (*ledger.Ledger, error)

// answer runs a command whose arguments were read, unless they were wrong, and returns the exit code.
func answer(ctx context.Context, command string, wrong error, stderr io.Writer, do func(context.Context) error) int {
	switch {
	case errors.Is(wrong, flag.ErrHelp):
		return 0
	case wrong != nil:
		tell(stderr, text.Line(command+": "+wrong.Error())+"; -h says more\n")
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := do(ctx); err != nil {
		tell(stderr, text.Line(command+": "+err.Error())+"\n")
		return exitUnknown
	}
	return 0
}

// tell prints. When that fails, nobody is left who could be told.
func tell(to io.Writer, words string) { _, _ = io.WriteString(to, words) }

// read reads arguments: flags, and between them one name, which is empty unless there is exactly one.
func read(flags *flag.FlagSet, args []string, usage string, stderr io.Writer) (name string, err error) {
	flags.SetOutput(io.Discard)
	var names []string
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				flags.SetOutput(stderr)
				tell(stderr, usage)
				flags.PrintDefaults()
			}
			return "", err
		}
		if args = flags.Args(); len(args) > 0 {
			names, args = append(names, args[0]), args[1:]
		}
	}
	if len(names) != 1 {
		return "", nil
	}
	return names[0], nil
}

func configuration(path string) (*config.Configuration, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the operator's configuration (--config): %w", err)
	}
	return config.Load(path, content)
}

// openKept opens a ledger that is there.
func openKept(ctx context.Context, at config.Ledger, open Open) (*ledger.Ledger, error) {
	if !at.Kept() {
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

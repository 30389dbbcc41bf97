package doctor

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// exitNotExamined is the exit code where the cluster could not be asked.
const exitNotExamined = 2

// Timeout bounds each request.
const Timeout = 10 * time.Second

const long = `Says on one screen what of the cluster is misconfigured, and how to mend it. It asks as the user of your
kubeconfig, and changes nothing.

Each line begins with OK, with WRONG for what is to be mended, with WARN for what may be meant, or with ? for what could not be
found out. Below is what to do, and behind a $ a command for it, in which you replace capital words.

Exit code: 0 for a cluster that is set up; 1 when something is to be mended; 2 when the cluster cannot be asked, or the command or
the configuration is wrong.`

// Command is `tideline doctor`.
func Command(connection *cli.Connection) *cobra.Command {
	var file string
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "List what is misconfigured in the cluster, and how to mend it",
		Long:  long,
		Example: `  tideline doctor
  tideline doctor --context staging --config configuration.yaml`,
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg *config.Configuration
			if file != "" {
				given, err := cli.ReadConfiguration(file)
				if err != nil {
					cli.Tell(cmd.ErrOrStderr(), err.Error()+"\n")
					return cli.Exit(exitNotExamined)
				}
				cfg = given
			}
			findings, err := diagnose(cmd.Context(), cfg, connection)
			if err != nil {
				cli.Tell(cmd.ErrOrStderr(), text.SingleLine("Cannot examine the cluster: "+err.Error())+"\n")
				return cli.Exit(exitNotExamined)
			}
			return tell(cmd.OutOrStdout(), findings, output)
		},
	}
	cmd.Flags().StringVar(&file, "config", "",
		"`FILE` with the operator's configuration (docs/configuration.md), whose tiers and pools are looked for; without it, that of "+
			"the operator in the cluster")
	connection.AddFlags(cmd)
	output.AddFlag(cmd)
	return cli.ForClusters(cmd)
}

// tell prints the findings, and returns the error whose exit code says whether one is wrong.
func tell(to io.Writer, findings []Finding, output cli.Output) error {
	if !output.JSON() {
		if _, err := PrintFindings(to, findings); err != nil {
			return cli.Exit(exitNotExamined)
		}
	} else if cli.PrintJSON(to, map[string][]Finding{"findings": findings}) != nil {
		return cli.Exit(exitNotExamined)
	}
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == Wrong }) {
		return cli.Exit(cli.ExitFailed)
	}
	return nil
}

// diagnose examines the cluster; without a configuration, by that of the operator in it.
func diagnose(ctx context.Context, cfg *config.Configuration, connection *cli.Connection) ([]Finding, error) {
	cluster, err := connection.Config()
	if err != nil {
		return nil, err
	}
	c, err := connection.Client(Timeout)
	if err != nil {
		return nil, err
	}
	cluster.Timeout = Timeout
	d, err := discovery.NewDiscoveryClientForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server at %s: %w", cluster.Host, err)
	}
	facts, err := GatherFacts(ctx, c, d)
	if err != nil {
		return nil, err
	}
	return ExamineFacts(facts, configured(facts, cfg)), nil
}

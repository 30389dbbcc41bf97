package why

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tideline-io/tideline/internal/cli"
)

const whyLong = `With --at, prints what a job was doing at a time, since when and why, with the figures of then; who held what in its queue; who
came before it, and what happened next. It reads the ledger that the configuration names, so it runs where the operator runs.

Exit code: 0 when something is known; 1 when nothing is, or the ledger cannot be read; 2 when the command is wrong.`

// Command is `tideline why`. Clock says the present.
func Command(connection *cli.Connection, open Open, clock func() time.Time) *cobra.Command {
	var at, zone string
	var q dispute
	cmd := &cobra.Command{
		Use:               "why JOB --at TIME",
		Short:             "Say what a job was doing, and why",
		Long:              whyLong,
		Example:           `  kubectl exec -n tideline-system deploy/tideline-controller-manager -- /tideline why ads/ctr --at "2026-11-17 14:30"`,
		ValidArgsFunction: connection.CompleteJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := connection.Name("job", args)
			if err != nil {
				return err
			}
			q.namespace, q.name = name.Namespace, name.Name
			if err := q.parse(at, zone, clock()); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return q.answer(ctx, cmd.OutOrStdout(), open)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "`TIME` in question: 2006-01-02 15:04 in the zone, or as in RFC 3339")
	cmd.Flags().StringVar(&zone, "zone", "UTC", "`name` of the time zone of what is asked and printed, as in Asia/Shanghai")
	cmd.Flags().StringVar(&q.config, "config", DefaultConfig, "`FILE` with the operator's configuration, which names the ledger")
	connection.AddFlags(cmd)
	connection.AddNamespaceFlag(cmd)
	return cli.ForJobs(cmd)
}

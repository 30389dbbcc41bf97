package why

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tideline-io/tideline/internal/cli"
)

const whyLong = `Says what a job does now, since when and why, what it waits for, and what to do: from the job, its events
and its profile, as the user of your kubeconfig.

With --at, says what a job was doing then, with the figures of then; which jobs held what in its queue; which came before it, and
what happened next. That is in the ledger, which the operator's configuration names, so this form runs where the operator runs.

Exit code: 0 when something is known; 1 when nothing is, or it cannot be read; 2 when the command is wrong.`

// Command is `tideline why`. Clock says the present.
func Command(connection *cli.Connection, open cli.OpenLedger, clock func() time.Time) *cobra.Command {
	var at, zone, kind string
	var q dispute
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "why JOB",
		Short: "Say what a job does, or did, and why",
		Long:  whyLong,
		Example: `  tideline why ctr -n ads
  kubectl exec -n tideline-system deploy/tideline-controller-manager -- /tideline why ads/ctr --at "2026-11-17 14:30"`,
		ValidArgsFunction: connection.CompleteJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := connection.Name("job", args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if kind != "" && kind != "job" && kind != "merge" {
				return cli.Usagef("--kind %q: it is job or merge", kind)
			}
			if !cmd.Flags().Changed("at") {
				c, err := connection.Client(requestTimeout)
				if err != nil {
					return err
				}
				return answerNow(ctx, c, name, kind, output, cmd.OutOrStdout(), clock())
			}
			q.namespace, q.name = name.Namespace, name.Name
			if err := parseMoment(&q, at, zone, clock()); err != nil {
				return err
			}
			if output.JSON() {
				return cli.Usagef("-o json is for what a job does now: leave out --at")
			}
			return q.answer(ctx, cmd.OutOrStdout(), open)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "`TIME` in question: 2006-01-02 15:04 in the zone, or as in RFC 3339; default: now")
	cmd.Flags().StringVar(&kind, "kind", "", "`kind`, job or merge, where there is one of each by the name now")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"job", "merge"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&zone, "zone", "UTC", "`name` of the time zone of what is asked and printed, as in Asia/Shanghai")
	cmd.Flags().StringVar(&q.config, "config", cli.DefaultConfig, "`FILE` with the operator's configuration, which names the ledger")
	connection.AddFlags(cmd)
	connection.AddNamespaceFlag(cmd)
	output.AddFlag(cmd)
	return cli.ForJobs(cmd)
}

// Package space has the commands that say how large PersistentVolumeClaims of a team are and who uses them, and that delete those
// which nothing has used for as long as their own rule says. They act with the user's rights alone.
package space

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/space"
)

// timeout bounds each request.
const timeout = 30 * time.Second

const spaceLong = `Lists the PersistentVolumeClaims of a namespace, or of all namespaces of a profile: how large they are, which
data sets are in them, who uses them, and what "tideline prune" would do. Asks as the user of your kubeconfig.

A claim is used by whatever names it and has not ended: trainings that run, wait or are suspended, MergeJobs, pods, and jobs,
services and notebooks of other kinds.

Exit code: 0 when all was read; 1 when not, and what is missing is on standard error; 2 when the command is wrong.`

// scope is whose claims a command is about.
type scope struct{ profile string }

func (s *scope) addFlags(cmd *cobra.Command, connection *cli.Connection) {
	cmd.Flags().StringVar(&s.profile, "profile", "", "`name` of a profile: the claims of all its namespaces")
	connection.AddFlags(cmd)
	connection.AddNamespaceFlag(cmd)
}

// AskSpace is `tideline space`. Clock says the present.
func AskSpace(connection *cli.Connection, clock func() time.Time) *cobra.Command {
	var of scope
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "space",
		Short: "Say how large claims are and who uses them",
		Long:  spaceLong,
		Example: `  tideline space -n ads
  tideline space --profile ads`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, t, g, err := of.look(cmd, connection)
			if err != nil {
				return err
			}
			said := describe(bare(g.claims), t.whole, clock())
			if output.JSON() {
				err = cli.PrintJSON(cmd.OutOrStdout(), said)
			} else {
				said.print(cmd.OutOrStdout())
			}
			if err != nil || len(g.unread) == 0 {
				return err
			}
			tellUnread(cmd.ErrOrStderr(), g)
			return cli.Exit(cli.ExitFailed)
		},
	}
	of.addFlags(cmd, connection)
	output.AddFlag(cmd)
	return cli.ForClusters(cmd)
}

func tellUnread(to io.Writer, g *gathered) {
	for _, words := range g.unread {
		cli.Tell(to, text.SingleLine(words)+"\n")
	}
}

// answer is what the commands know of a team's claims.
type answer struct {
	Claims []line `json:"claims"`
	// Bytes of all claims, of those that are used, and of unused ones that no rule will ever delete.
	AllBytes  int64 `json:"allBytes"`
	UsedBytes int64 `json:"usedBytes"`
	KeptBytes int64 `json:"keptBytes"`

	totals space.Totals
}

// line is one claim.
type line struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Size      string `json:"size"`
	// Data are versions of data sets, as in clicks:2026-11.
	Data   []string `json:"data,omitempty"`
	UsedBy []string `json:"usedBy,omitempty"`
	Rule   string   `json:"rule,omitempty"`
	// Step is what prune would do: keep, mark, renew, unmark, unlist or delete; Why says why.
	Step space.Step `json:"step"`
	Why  string     `json:"why"`
}

func describe(claims []space.Claim, whole bool, now time.Time) *answer {
	a := &answer{Claims: []line{}, totals: space.SumClaims(claims)}
	a.AllBytes, a.UsedBytes, a.KeptBytes = a.totals.All.Space.Value(), a.totals.Used.Space.Value(), a.totals.Kept.Space.Value()
	for i, d := range space.DecideAll(claims, whole, now) {
		a.Claims = append(a.Claims, lineOf(&claims[i], d))
	}
	return a
}

func lineOf(c *space.Claim, d space.Decision) line {
	return line{
		Namespace: c.Namespace, Name: c.Name, Size: c.Size.String(), Data: c.Versions, UsedBy: c.Users, Rule: c.Rule,
		Step: d.Step, Why: d.Why,
	}
}

const (
	// mostNamed is how many users a line of the table names.
	mostNamed = 2
	// longestCell is how many bytes it has of users, and of data, at most.
	longestCell = 80
)

func (a *answer) print(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "CLAIM\tSIZE\tDATA\tUSED BY\tRULE\tPRUNE")
	for i := range a.Claims {
		l := &a.Claims[i]
		by := strings.Join(l.UsedBy[:min(len(l.UsedBy), mostNamed)], ", ")
		if more := len(l.UsedBy) - mostNamed; more > 0 {
			by += fmt.Sprintf(", %d more", more)
		}
		// Owners and rules are what anybody wrote.
		_, _ = fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\t%s: %s\n", l.Namespace, l.Name, l.Size,
			dash(text.ClipLine(strings.Join(l.Data, ", "), longestCell)), dash(text.ClipLine(by, longestCell)),
			dash(text.ClipLine(l.Rule, 20)), l.Step, text.SingleLine(l.Why))
	}
	_ = w.Flush()
	t := &a.totals
	cli.Tell(to, fmt.Sprintf("%s of %s; %d of them, of %s, are used, and %d unused ones, of %s, have no rule that counts.\n",
		text.FormatCount(t.All.Claims, "claim"), t.All.Space.String(), t.Used.Claims, t.Used.Space.String(), t.Kept.Claims,
		t.Kept.Space.String()))
}

func dash(words string) string {
	if words == "" {
		return "-"
	}
	return words
}

// look reads whose claims are asked for, and what there is of them.
func (s *scope) look(cmd *cobra.Command, connection *cli.Connection) (client.Client, *team, *gathered, error) {
	if s.profile != "" && cmd.Flags().Changed("namespace") {
		return nil, nil, nil, cli.Usagef("--profile %s is of all its namespaces: leave out -n, or --profile", s.profile)
	}
	c, err := connection.Client(timeout)
	if err != nil {
		return nil, nil, nil, err
	}
	namespace := ""
	if s.profile == "" {
		if namespace, err = connection.FindNamespace(); err != nil {
			return nil, nil, nil, err
		}
	}
	t, err := findTeam(cmd.Context(), c, namespace, s.profile)
	if err != nil {
		return nil, nil, nil, err
	}
	g, err := gather(cmd.Context(), c, t)
	return c, t, g, err
}

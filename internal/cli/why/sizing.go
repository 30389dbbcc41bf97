package why

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const sizingLong = `Prints what a task was seen using, a day a line, and what its containers should request by that, with
the formula. It reads the ledger that the configuration names, so it runs where the operator runs. What became of one job
is in its status: kubectl get etj NAME -o yaml, status.sizing.

Exit code: 0 when something is known; 1 when nothing is, or the ledger cannot be read; 2 when the command is wrong.`

// question is what the command was asked.
type question struct {
	namespace, task, kind, tier, config string
	days                                int
	output                              cli.Output
}

// Sizing is `tideline sizing`. Clock says the present, by which days are counted.
func Sizing(connection *cli.Connection, open cli.OpenLedger, clock func() time.Time) *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "sizing TASK",
		Short: "Say what a task used, and what its containers should request",
		Long:  sizingLong,
		Example: `  kubectl exec -n tideline-system deploy/tideline-controller-manager -- /tideline sizing ads/ctr
  tideline sizing ctr -n ads --tier small-traffic --config configuration.yaml`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parse(&q, connection, args); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return q.answer(ctx, cmd.OutOrStdout(), open, clock())
		},
	}
	cmd.Flags().StringVar(&q.kind, "kind", "job", "`kind` of the task's jobs: job or merge")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"job", "merge"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&q.tier, "tier", "", "`name` of a tier; by default all")
	cmd.Flags().IntVar(&q.days, "days", 7, "`number` of days back, from 1 to 28")
	cmd.Flags().StringVar(&q.config, "config", cli.DefaultConfig, "`FILE` with the operator's configuration")
	connection.AddNamespaceFlag(cmd)
	q.output.AddFlag(cmd)
	return cli.ForJobs(cmd)
}

// parse completes the question.
func parse(q *question, connection *cli.Connection, args []string) error {
	kind := q.kind
	q.kind = map[string]string{"job": v1beta1.ElasticTrainingJobKind, "merge": v1beta1.MergeJobKind}[kind]
	switch {
	case q.kind == "":
		return cli.Usagef("--kind %q: it is job or merge", kind)
	case q.days < 1 || q.days > 28:
		return cli.Usagef("--days %d: it is from 1 to 28", q.days)
	}
	name, err := connection.Name("task", args)
	q.namespace, q.task = name.Namespace, name.Name
	return err
}

// answer reads the ledger and prints what it says.
func (q question) answer(ctx context.Context, to io.Writer, open cli.OpenLedger, now time.Time) error {
	tiers, l, err := q.open(ctx, open)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	known, err := q.read(ctx, l, now)
	if err != nil {
		return err
	}
	if len(known) == 0 {
		return fmt.Errorf("nothing is known of task %s of %ss in namespace %s in the last %d days: it did not run, or "+
			"what it used was not collected (prometheus.url)", q.task, q.kind, q.namespace, q.days)
	}
	if q.output.JSON() {
		return cli.PrintJSON(to, q.forPrograms(known, tiers))
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	cli.Tell(w, fmt.Sprintf("Task %s of %ss in namespace %s, %d days until %s, in UTC\n", q.task, q.kind, q.namespace, q.days,
		now.UTC().Format(time.RFC3339)))
	for _, part := range slices.SortedFunc(maps.Keys(known), comparePart) {
		if part.Container == "" {
			continue
		}
		q.print(w, part, known[part], tiers)
	}
	if said := history(q.days, known).DescribeAccelerators(); said != "" {
		cli.Tell(w, "\n"+said+"\n")
	}
	return w.Flush()
}

func comparePart(a, b sizing.Part) int {
	return strings.Compare(string(a.Role)+"/"+a.Container, string(b.Role)+"/"+b.Container)
}

func (q question) open(ctx context.Context, open cli.OpenLedger) (config.Tiers, *ledger.Ledger, error) {
	cfg, err := cli.ReadOperatorConfiguration(q.config)
	if err != nil {
		return nil, nil, err
	}
	tiers := cfg.Tiers
	if q.tier != "" {
		tier, found := tiers.FindTier(q.tier)
		if !found {
			return nil, nil, fmt.Errorf("there is no tier %q: there are %s", q.tier, tiers.JoinedNames())
		}
		tiers = config.Tiers{tier}
	}
	l, err := open.OpenKept(ctx, cfg.Ledger)
	return tiers, l, err
}

// read returns the days of each part of the task, by day.
func (q question) read(ctx context.Context, l *ledger.Ledger, now time.Time) (map[sizing.Part]map[time.Time]sizing.Usage, error) {
	known := map[sizing.Part]map[time.Time]sizing.Usage{}
	from, to := now.AddDate(0, 0, -q.days), now.Add(time.Second) // and today, which is not over
	err := l.PartDays(ctx, ledger.PartQuery{
		From: from, To: to, Namespace: q.namespace, Kind: q.kind, Task: q.task,
	}, func(d ledger.PartDay) error {
		var u sizing.Usage
		if err := json.Unmarshal([]byte(d.Content), &u); err != nil {
			return fmt.Errorf("read what %s used on %s: %w", d.Part, d.Day.Format(time.DateOnly), err)
		}
		part := sizing.Part{Role: sizing.Role(d.Role), Container: d.Container}
		if known[part] == nil {
			known[part] = map[time.Time]sizing.Usage{}
		}
		known[part][d.Day] = u
		return nil
	})
	if err != nil {
		return nil, err
	}
	kills, err := l.OOMKills(ctx, from, to)
	for i := range kills {
		k := &kills[i]
		byDay := known[sizing.Part{Role: sizing.Role(k.Role), Container: k.Container}]
		if k.Namespace != q.namespace || k.Kind != q.kind || k.Task != q.task || byDay == nil {
			continue
		}
		day := k.At.UTC().Truncate(24 * time.Hour)
		byDay[day] = byDay[day].Merge(sizing.Usage{OOMKills: 1, OOMLimit: k.LimitBytes})
	}
	return known, err
}

func history(days int, known map[sizing.Part]map[time.Time]sizing.Usage) sizing.History {
	h := sizing.History{WindowDays: days}
	for part, byDay := range known {
		for day, u := range byDay {
			h.Add(part, day, u)
		}
	}
	return h
}

// print prints a part: its days, and what follows from them by tier.
func (q question) print(to io.Writer, part sizing.Part, byDay map[time.Time]sizing.Usage, tiers config.Tiers) {
	cli.Tell(to, fmt.Sprintf("\n%s/%s\nDAY\tRAN\tSEEN\tCPU P50\tP95\tP99\tTHROTTLED\tMEMORY\tHELD\tOOM\n", part.Role,
		part.Container))
	for _, day := range slices.SortedFunc(maps.Keys(byDay), time.Time.Compare) {
		u := byDay[day]
		cli.Tell(to, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", day.Format(time.DateOnly),
			span(u.RunSeconds), percentage(u.SeenSeconds, u.RunSeconds),
			processors(u, 0.5), processors(u, 0.95), processors(u, 0.99),
			percentage(u.Throttled.SampleCount(), u.Throttled.SampleCount()+u.CPU.SampleCount()),
			memory(u.MemoryPeak), memory(u.MemoryHeld), u.OOMKills))
	}
	h := history(q.days, map[sizing.Part]map[time.Time]sizing.Usage{part: byDay})
	for _, tier := range tiers {
		for _, resource := range []string{sizing.CPU, sizing.Memory} {
			cli.Tell(to, fmt.Sprintf("%s in tier %s: %s\n", resource, tier.Name, h.Estimate(part, resource,
				tier.Sizing).DescribeUse(resource)))
		}
	}
}

// span is a length of time to the minute.
func span(seconds int64) string {
	said := strings.TrimSuffix((time.Duration(seconds) * time.Second).Truncate(time.Minute).String(), "0s")
	if hours, whole := strings.CutSuffix(said, "h0m"); whole {
		return hours + "h"
	}
	return cmp.Or(said, "0m")
}

func percentage(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", part*100/whole)
}

func processors(u sizing.Usage, at float64) string {
	enough, known := u.Quantile(at)
	if !known {
		return "?"
	}
	return sizing.FormatAmount(int64(enough*1000), sizing.CPU)
}

func memory(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return sizing.FormatAmount(bytes, sizing.Memory)
}

// sizingAnswer is the answer for programs. Memory is in bytes, processors are in cores.
type sizingAnswer struct {
	Namespace string       `json:"namespace"`
	Task      string       `json:"task"`
	Kind      string       `json:"kind"`
	Parts     []partAnswer `json:"parts"`
}

type partAnswer struct {
	Role      string           `json:"role"`
	Container string           `json:"container"`
	Days      []dayAnswer      `json:"days"`
	Estimates []estimateAnswer `json:"estimates"`
}

type dayAnswer struct {
	Day             string   `json:"day"`
	RunSeconds      int64    `json:"runSeconds"`
	SeenSeconds     int64    `json:"seenSeconds"`
	CPUP50          *float64 `json:"cpuP50,omitempty"`
	CPUP95          *float64 `json:"cpuP95,omitempty"`
	CPUP99          *float64 `json:"cpuP99,omitempty"`
	MemoryPeakBytes int64    `json:"memoryPeakBytes"`
	OOMKills        int64    `json:"oomKills"`
}

type estimateAnswer struct {
	Tier     string `json:"tier"`
	Resource string `json:"resource"`
	// Request is what the containers should request; absent where too little is known.
	Request string `json:"request,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (q question) forPrograms(known map[sizing.Part]map[time.Time]sizing.Usage, tiers config.Tiers) sizingAnswer {
	all := sizingAnswer{Namespace: q.namespace, Task: q.task, Kind: q.kind, Parts: []partAnswer{}}
	for _, part := range slices.SortedFunc(maps.Keys(known), comparePart) {
		if part.Container == "" {
			continue
		}
		p := partAnswer{Role: string(part.Role), Container: part.Container}
		for _, day := range slices.SortedFunc(maps.Keys(known[part]), time.Time.Compare) {
			u := known[part][day]
			p.Days = append(p.Days, dayAnswer{
				Day: day.Format(time.DateOnly), RunSeconds: u.RunSeconds, SeenSeconds: u.SeenSeconds, CPUP50: quantile(u, 0.5),
				CPUP95: quantile(u, 0.95), CPUP99: quantile(u, 0.99), MemoryPeakBytes: u.MemoryPeak, OOMKills: u.OOMKills,
			})
		}
		h := history(q.days, map[sizing.Part]map[time.Time]sizing.Usage{part: known[part]})
		for _, tier := range tiers {
			for _, resource := range []string{sizing.CPU, sizing.Memory} {
				e := h.Estimate(part, resource, tier.Sizing)
				answer := estimateAnswer{Tier: tier.Name, Resource: resource, Reason: e.Reason, Message: e.DescribeUse(resource)}
				if e.Cap > 0 {
					answer.Request = sizing.FormatAmount(e.Cap, resource)
				}
				p.Estimates = append(p.Estimates, answer)
			}
		}
		all.Parts = append(all.Parts, p)
	}
	return all
}

func quantile(u sizing.Usage, at float64) *float64 {
	enough, known := u.Quantile(at)
	if !known {
		return nil
	}
	return &enough
}

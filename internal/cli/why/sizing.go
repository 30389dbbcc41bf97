package why

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const usage = `Usage: tideline sizing NAMESPACE/TASK [--kind job|merge] [--tier NAME] [--days 7] --config FILE

Prints what a task was seen using, a day a line, and what its containers should request by that, with the formula. It reads the
ledger that the configuration names, so it runs where the operator runs:

  kubectl exec -n tideline-system deploy/tideline-controller-manager -- /tideline sizing ads/ctr

What became of one job is in its status: kubectl get etj NAME -o yaml, status.sizing.

Exit code: 0 when something is known; 1 when nothing is, or the ledger cannot be read; 2 when the command is wrong.

`

// question is what the command was asked.
type question struct {
	namespace, task, kind, tier, config string
	days                                int
}

// Sizing is `tideline sizing`: args are what follows the word sizing. It prints the answer on stdout, and returns the exit code.
func Sizing(ctx context.Context, args []string, stdout, stderr io.Writer, open Open, now time.Time) int {
	q, err := parse(args, stderr)
	return answer(ctx, "tideline sizing", err, stderr, func(ctx context.Context) error { return q.answer(ctx, stdout, open, now) })
}

func parse(args []string, stderr io.Writer) (question, error) {
	q, kind := question{}, ""
	flags := flag.NewFlagSet("tideline sizing", flag.ContinueOnError)
	flags.StringVar(&kind, "kind", "job", "`kind` of the task's jobs: job or merge")
	flags.StringVar(&q.tier, "tier", "", "`name` of a tier; by default all")
	flags.IntVar(&q.days, "days", 7, "`number` of days back, from 1 to 28")
	flags.StringVar(&q.config, "config", DefaultConfig, "`FILE` with the operator's configuration")
	name, err := read(flags, args, usage, stderr)
	if err != nil {
		return q, err
	}
	var found bool
	q.namespace, q.task, found = strings.Cut(name, "/")
	q.kind = map[string]string{"job": v1alpha1.ElasticTrainingJobKind, "merge": v1alpha1.MergeJobKind}[kind]
	switch {
	case !found || q.namespace == "" || q.task == "":
		return q, errors.New("name one task as NAMESPACE/TASK")
	case q.kind == "":
		return q, fmt.Errorf("--kind %q: it is job or merge", kind)
	case q.days < 1 || q.days > 28:
		return q, fmt.Errorf("--days %d: it is from 1 to 28", q.days)
	}
	return q, nil
}

// answer reads the ledger and prints what it says.
func (q question) answer(ctx context.Context, to io.Writer, open Open, now time.Time) error {
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
		return fmt.Errorf("nothing is known of task %s of %ss in namespace %s in the last %d days: it did not run, or nobody "+
			"collected what it used (prometheus.url)", q.task, q.kind, q.namespace, q.days)
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	tell(w, fmt.Sprintf("Task %s of %ss in namespace %s, %d days until %s, in UTC\n", q.task, q.kind, q.namespace, q.days,
		now.UTC().Format(time.RFC3339)))
	for _, part := range slices.SortedFunc(maps.Keys(known), comparePart) {
		if part.Container == "" {
			continue
		}
		q.print(w, part, known[part], tiers)
	}
	if said := history(q.days, known).Accelerators(); said != "" {
		tell(w, "\n"+said+"\n")
	}
	return w.Flush()
}

func comparePart(a, b sizing.Part) int {
	return strings.Compare(string(a.Role)+"/"+a.Container, string(b.Role)+"/"+b.Container)
}

func (q question) open(ctx context.Context, open Open) (config.Tiers, *ledger.Ledger, error) {
	cfg, err := configuration(q.config)
	if err != nil {
		return nil, nil, err
	}
	tiers := cfg.Tiers
	if q.tier != "" {
		tier, found := tiers.Find(q.tier)
		if !found {
			return nil, nil, fmt.Errorf("there is no tier %q: there are %s", q.tier, tiers.Names())
		}
		tiers = config.Tiers{tier}
	}
	l, err := openKept(ctx, cfg.Ledger, open)
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
	tell(to, fmt.Sprintf("\n%s/%s\nDAY\tRAN\tSEEN\tCPU P50\tP95\tP99\tTHROTTLED\tMEMORY\tHELD\tOOM\n", part.Role, part.Container))
	for _, day := range slices.SortedFunc(maps.Keys(byDay), time.Time.Compare) {
		u := byDay[day]
		tell(to, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", day.Format(time.DateOnly),
			span(u.RunSeconds), percentage(u.SeenSeconds, u.RunSeconds),
			processors(u, 0.5), processors(u, 0.95), processors(u, 0.99),
			percentage(u.Throttled.Samples(), u.Throttled.Samples()+u.CPU.Samples()),
			memory(u.MemoryPeak), memory(u.MemoryHeld), u.OOMKills))
	}
	h := history(q.days, map[sizing.Part]map[time.Time]sizing.Usage{part: byDay})
	for _, tier := range tiers {
		for _, resource := range []string{sizing.CPU, sizing.Memory} {
			tell(to, fmt.Sprintf("%s in tier %s: %s\n", resource, tier.Name, h.Estimate(part, resource, tier.Sizing).Say(resource)))
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
	return sizing.Words(int64(enough*1000), sizing.CPU)
}

func memory(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return sizing.Words(bytes, sizing.Memory)
}

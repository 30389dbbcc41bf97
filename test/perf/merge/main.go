// Merge compares who starts merges: trainings themselves, as plain pods or as gangs, or Tideline's MergeJobs. 60 models are
// merged every 10 hours in pools of so many machines, on a real API server and Volcano, in time that is simulated. It writes the
// table of docs/benchmarks/merge.md, and all results and the drawing beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/benchmark"
	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// options are the flags.
type options struct {
	scale      float64
	pools      []int
	strategies []strategy
	operator   string
	page       string
	commit     string
}

func main() { os.Exit(status(os.Args[1:])) }

// status runs the bench with these arguments, and returns the exit status.
func status(args []string) int {
	return benchmark.Main("merge", func(ctx context.Context) error {
		o, err := parse(args)
		if err != nil {
			return err
		}
		return run(ctx, o)
	})
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("merge", flag.ContinueOnError)
	flags.Float64Var(&o.scale, "scale", 300, "simulated `seconds` per second")
	pools := flags.String("pools", "8,12,16,20,24,28,32,36,40", "machines of each pool, separated by commas")
	keys := flags.String("strategies", "", "who starts merges, separated by commas (default all)")
	flags.StringVar(&o.operator, "operator", "bin/tideline", "`file` with the operator")
	flags.StringVar(&o.page, "page", "docs/benchmarks/merge.md",
		"`file` whose table is written, with results and drawing beside it; none: only printed")
	flags.StringVar(&o.commit, "commit", "", "the `commit` that is measured")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for field := range strings.SplitSeq(*pools, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < fixed.machines {
			return o, fmt.Errorf("-pools: %q must be a number of at least %d machines, which one merge takes", field, fixed.machines)
		}
		o.pools = append(o.pools, n)
	}
	slices.Sort(o.pools)
	o.strategies = slices.DeleteFunc(slices.Clone(strategies), func(s strategy) bool {
		return *keys != "" && !slices.Contains(strings.Split(*keys, ","), s.key)
	})
	if len(o.strategies) == 0 || o.scale <= 0 {
		return o, errors.New("nothing to run: -strategies names no known strategy, or -scale is not positive")
	}
	return o, nil
}

func run(ctx context.Context, o options) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{GPUNodes: -1, SchedulePeriod: 100 * time.Millisecond, Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	world, err := testutil.NewWorld(c.KubeconfigPath(), "")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tideline-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{experiment: fixed, World: world, scale: o.scale, commit: o.commit, costs: &costs{}, log: os.Stderr}
	for _, s := range o.strategies {
		if err := b.tell(ctx, c, o, s, dir); err != nil {
			return err
		}
	}
	return b.report(o.page)
}

// tell runs one strategy in all pools, with the operator where the strategy is Tideline's.
func (b *bench) tell(ctx context.Context, c *cluster.Cluster, o options, s strategy, dir string) error {
	if s.tideline {
		operator, err := b.operate(ctx, c, o, s, dir)
		if err != nil {
			return err
		}
		defer operator.Kill()
	}
	return b.run(ctx, s, o.pools)
}

// operate starts the operator for the pools of a strategy.
func (b *bench) operate(ctx context.Context, c *cluster.Cluster, o options, s strategy, dir string) (*testutil.Operator, error) {
	b.stores = filepath.Join(dir, "stores")
	var queues []string
	for _, machines := range o.pools {
		queues = append(queues, poolName(s, machines))
	}
	if err := os.Mkdir(b.stores, 0o700); err != nil {
		return nil, err
	}
	return startOperator(ctx, c, b.World, o.operator, dir, b.stores, queues)
}

// report prints the table, or writes it into the page, and all results and the drawing beside it. Results of other strategies and
// pools that are there, made at the same scale, stay.
func (b *bench) report(page string) error {
	beside := strings.TrimSuffix(page, filepath.Ext(page))
	drawing, file := beside+".svg", beside+".csv"
	cost := b.costs.quantile(0.5)
	if page == "" {
		said := conditions(b.scale, cost, b.results) + "\n"
		_, err := fmt.Println(said + table(b.experiment, b.results) + "\n" + encoded(b.scale, b.results))
		return err
	}
	earlier, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	before, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	all := join(decoded(string(earlier), b.scale), b.results)
	text := conditions(b.scale, cost, all) + "\n" + table(b.experiment, all)
	text += fmt.Sprintf("\n[All results](%s), [as a drawing](%s).\n", filepath.Base(file), filepath.Base(drawing))
	after, err := markdown.ReplaceMarked(string(before), command, text)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return errors.Join(
		os.WriteFile(page, []byte(after), 0o644),
		os.WriteFile(file, []byte(encoded(b.scale, all)), 0o644),
		os.WriteFile(drawing, []byte(chart(b.bound(), panels(b.experiment, all))), 0o644),
	)
}

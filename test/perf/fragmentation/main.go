// Fragmentation fills the nodes of a public trace with its pods, under Volcano's own scheduler with two configurations, and
// writes docs/benchmarks/fragmentation.md, which has the rules.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/tideline-io/tideline/test/perf/scheduler"
	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// command is what writes the results of the page.
const command = "make bench-fragmentation"

var subjects = []string{"stock", "ours"}

// result is one run.
type result struct {
	subject string
	seed    uint64
	at      []figures
}

func main() {
	nodes := flag.String("nodes", "../shared/data/openb_node_list_gpu_node.csv", "`file` of openb's nodes")
	pods := flag.String("pods", "../shared/data/openb_pod_list_default.csv", "`file` of openb's pods")
	seeds := flag.Int("seeds", 5, "`number` of seeds, 2 to 8")
	commit := flag.String("commit", "", "`commit` that results are said to be of")
	page := flag.String("page", "docs/benchmarks/fragmentation.md", "`page` into which results are written")
	moving := flag.Bool("repack", false, "try what moving surplus is worth, by the model alone")
	flag.Parse()
	if *moving {
		if err := repackFiles(*nodes, *pods, *seeds, *commit, *page); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "fragmentation:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(context.Background(), *nodes, *pods, *seeds, *commit, *page); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "fragmentation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, nodesFile, podsFile string, seeds int, commit, page string) error {
	if seeds < 2 || seeds > benchmark.MostSeeds {
		return fmt.Errorf("-seeds is %d: give 2 to %d", seeds, benchmark.MostSeeds)
	}
	nodes, err1 := readFile(nodesFile, nodeColumns)
	pods, err2 := readFile(podsFile, podColumns)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	program, done, err := scheduler.BuildAside(ctx)
	if err != nil {
		return err
	}
	defer done()
	configurations := map[string]string{"stock": program.Stock, "ours": program.Ours}
	results := make([]result, seeds*len(subjects))
	err = benchmark.RunAll(len(results), func(i int) error {
		r := &results[i]
		r.subject, r.seed = subjects[i%len(subjects)], uint64(1+i/len(subjects))
		var err error
		if r.at, err = play(ctx, program, configurations[r.subject], nodes, pods, r.seed); err != nil {
			return fmt.Errorf("%s, seed %d: %w", r.subject, r.seed, err)
		}
		return nil
	}, func(done, all int) { _, _ = fmt.Fprintf(os.Stderr, "%d of %d runs\n", done, all) })
	if err != nil {
		return err
	}
	return benchmark.WriteResults(page, command, tables(commit, results), nil)
}

func repackFiles(nodesFile, podsFile string, seeds int, commit, page string) error {
	nodes, err1 := readFile(nodesFile, nodeColumns)
	pods, err2 := readFile(podsFile, podColumns)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return runRepack(nodes, pods, seeds, commit, page)
}

func readFile(path string, columns [3]string) ([]shape, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	all, err := readShapes(file, columns)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

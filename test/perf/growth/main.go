// Bench-growth compares ways to grow: how much of the time of their devices elastic trainings use, under churn, with the planner
// of trainings and the model of capacity deciding. It writes the results of docs/benchmarks/growth.md, and the curves beside it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// command is what writes the results, between the page's marks.
const command = "make bench-growth"

func main() {
	page := flag.String("page", "docs/benchmarks/growth.md", "the page whose results are written")
	commit := flag.String("commit", "", "the commit that is measured")
	flag.Parse()
	results, err := measure(func(done, all int) {
		if done%100 == 0 || done == all {
			fmt.Fprintf(os.Stderr, "%d of %d runs\n", done, all)
		}
	})
	if err == nil {
		err = write(*page, *commit, results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func write(page, commit string, results []result) error {
	before, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	after, err := markdown.ReplaceMarked(string(before), command, tables(commit, results))
	if err != nil {
		return err
	}
	if err := os.WriteFile(page, []byte(after), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(filepath.Dir(page), "growth.svg"), []byte(drawing(results)), 0o600)
}

// result is one run.
type result struct {
	outage, every time.Duration
	subject       int
	seed          uint64
	outcome
}

// measure runs all subjects through all conditions with all seeds, on all cores.
func measure(tell func(done, all int)) ([]result, error) {
	var all []result
	for _, outage := range outages {
		for _, every := range changeEvery {
			for i := range subjects {
				for _, seed := range seeds {
					all = append(all, result{outage: outage, every: every, subject: i, seed: seed})
				}
			}
		}
	}
	var next, done atomic.Int64
	var workers errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return nil
				}
				r := &all[i]
				var err error
				if r.outcome, err = run(subjects[r.subject], r.seed, r.every, r.outage); err != nil {
					return err
				}
				tell(int(done.Add(1)), len(all))
			}
		})
	}
	return all, workers.Wait()
}

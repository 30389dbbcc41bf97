// Bench-growth compares ways to grow: how much of the time of their devices elastic trainings use, under churn, with the planner
// of trainings and the model of capacity deciding. It writes the results of docs/benchmarks/growth.md, and the curves beside it.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// command is what writes the results, between the page's marks.
const command = "make bench-growth"

// gainCommand writes those of one experiment alone.
const gainCommand = "make bench-gain"

func main() {
	page := flag.String("page", "docs/benchmarks/growth.md", "the page whose results are written")
	commit := flag.String("commit", "", "the commit that is measured")
	gain := flag.Bool("gain", false, "measure who free room goes to, and nothing else")
	flag.Parse()
	tell := func(done, all int) {
		if done%100 == 0 || done == all {
			fmt.Fprintf(os.Stderr, "%d of %d runs\n", done, all)
		}
	}
	write := writeGrowth
	if *gain {
		write = writeGain
	}
	err := write(*page, *commit, tell)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func writeGrowth(page, commit string, tell func(done, all int)) error {
	results, err := measure(tell)
	if err != nil {
		return err
	}
	return benchmark.WriteResults(page, command, tables(commit, results), map[string]string{"growth.svg": drawing(results)})
}

func writeGain(page, commit string, tell func(done, all int)) error {
	results, err := measureGain(tell)
	if err != nil {
		return err
	}
	return benchmark.WriteResults(page, gainCommand, gainTable(commit, results), nil)
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
	return all, benchmark.RunAll(len(all), func(i int) error {
		r := &all[i]
		var err error
		r.outcome, err = run(alike, subjects[r.subject], r.seed, r.every, r.outage)
		return err
	}, tell)
}

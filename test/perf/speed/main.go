// Speed compares how many jobs at once become running pods, and what that costs: by a plain client, Volcano Job without and with
// plugin svc, training-operator and Tideline, each alone on a cluster of its own, in rounds. It writes the tables of
// docs/benchmarks/speed.md, and keeps profiles of the operator.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// options are the flags.
type options struct {
	workload string
	// sizes are how many jobs come at once, run after run.
	sizes    []int
	rounds   int
	rest     time.Duration
	subjects []subject
	operator string
	profiles string
	page     string
	commit   string
}

// workloads are what runs by default.
var workloads = map[string]struct {
	sizes, subjects string
	rounds          int
}{
	beside: {sizes: "500", rounds: 2},
	large:  {sizes: "500,2000,10000", subjects: tideline, rounds: 1},
}

func main() { os.Exit(status(os.Args[1:])) }

// status runs the bench with these arguments, and returns the exit status.
func status(args []string) int {
	return benchmark.Main("speed", func(ctx context.Context) error {
		o, err := parse(args)
		if err != nil {
			return err
		}
		return compare(ctx, o)
	})
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("speed", flag.ContinueOnError)
	flags.StringVar(&o.workload, "workload", beside, "beside: next to others; large: Tideline alone, without a scheduler")
	sizes := flags.String("jobs", "", "how many `jobs` come at once; large: run after run, separated by commas "+
		"(default 500; large: 500,2000,10000)")
	flags.IntVar(&o.rounds, "rounds", 0, "how many `rounds` (default 2; large: 1)")
	flags.DurationVar(&o.rest, "rest", time.Minute, "how long all is left alone while it runs")
	keys := flags.String("subjects", "", "who makes the pods, separated by commas (default all)")
	flags.StringVar(&o.operator, "operator", "bin/tideline", "`file` with the operator")
	flags.StringVar(&o.profiles, "profiles", "bin/profiles", "`folder` for profiles of the operator")
	flags.StringVar(&o.page, "page", "docs/benchmarks/speed.md", "`file` whose table is written; none: only printed")
	flags.StringVar(&o.commit, "commit", "", "what the operator was built of")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	w, ok := workloads[o.workload]
	if !ok {
		return o, fmt.Errorf("-workload: there is no %q", o.workload)
	}
	o.rounds, *keys = cmp.Or(o.rounds, w.rounds), cmp.Or(*keys, w.subjects)
	for size := range strings.SplitSeq(cmp.Or(*sizes, w.sizes), ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-jobs: %q is no number of jobs", size)
		}
		o.sizes = append(o.sizes, n)
	}
	slices.Sort(o.sizes)
	switch {
	case o.workload == beside && len(o.sizes) > 1:
		return o, errors.New("-jobs: several only with -workload=large")
	case o.workload == large && (*keys != tideline || o.rounds > 1):
		return o, errors.New("-workload=large is of Tideline alone, and of one round")
	}
	o.subjects = slices.DeleteFunc(all(), func(s subject) bool {
		return *keys != "" && !slices.Contains(strings.Split(*keys, ","), s.key)
	})
	if len(o.subjects) == 0 || o.rounds < 1 {
		return o, errors.New("nothing to run: -subjects names no known one, or -rounds is below 1")
	}
	return o, nil
}

// compare measures each subject once a round, so that what else the machine does falls on all of them.
func compare(ctx context.Context, o options) error {
	results := map[string][]figures{}
	for round := range o.rounds {
		for _, s := range o.subjects {
			for _, jobs := range o.sizes {
				f, err := measure(ctx, o, s, jobs)
				if err != nil {
					fmt.Println(report(o, results)) // What was measured may have taken hours.
					return fmt.Errorf("%s: %w", s.title, err)
				}
				results[s.key] = append(results[s.key], f)
				_, _ = fmt.Fprintf(os.Stderr, "round %d of %d, %s: %s\n", round+1, o.rounds, s.title, f)
				if o.workload != large {
					continue
				}
				if err := publish(o, results); err != nil { // The next number of jobs may take an hour.
					return err
				}
			}
		}
	}
	if o.workload == large {
		return nil
	}
	return publish(o, results)
}

// publish writes the results to the page, or prints them if there is none.
func publish(o options, results map[string][]figures) error {
	switch {
	case o.page == "":
		_, err := fmt.Println(report(o, results))
		return err
	case o.workload == large:
		drawings := map[string]string{"speed.svg": drawMany(results[tideline])}
		return benchmark.WriteResults(o.page, "make bench-many", report(o, results), drawings)
	default:
		return benchmark.WriteResults(o.page, "make bench", report(o, results), nil)
	}
}

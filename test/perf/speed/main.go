// Speed compares how many jobs at once become running pods, and what that costs: by a plain client, Volcano Job without and with
// plugin svc, training-operator and Tideline, each alone on a cluster of its own, in rounds. It writes the tables of
// docs/benchmarks/speed.md, and keeps profiles of the operator.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// options are the flags.
type options struct {
	workload string
	jobs     int
	rounds   int
	rest     time.Duration
	subjects []subject
	operator string
	profiles string
	page     string
	commit   string
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
	flags.IntVar(&o.jobs, "jobs", 0, "how many `jobs` come at once (default 500; large: 10000)")
	flags.IntVar(&o.rounds, "rounds", 0, "how many `rounds` (default 2; large: 1)")
	flags.DurationVar(&o.rest, "rest", time.Minute, "how long all is left alone while it runs")
	keys := flags.String("subjects", "", "who makes the pods, separated by commas (default all)")
	flags.StringVar(&o.operator, "operator", "bin/tideline", "`file` with the operator")
	flags.StringVar(&o.profiles, "profiles", "bin/profiles", "`folder` for profiles of the operator")
	flags.StringVar(&o.page, "page", "docs/benchmarks/speed.md", "`file` whose table is written; none, or large: only printed")
	flags.StringVar(&o.commit, "commit", "", "what the operator was built of")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	defaults, ok := map[string][2]int{beside: {500, 2}, large: {10000, 1}}[o.workload]
	if !ok {
		return o, fmt.Errorf("-workload: there is no %q", o.workload)
	}
	if o.jobs == 0 {
		o.jobs = defaults[0]
	}
	if o.rounds == 0 {
		o.rounds = defaults[1]
	}
	if o.workload == large && *keys == "" {
		*keys = tideline
	}
	o.subjects = slices.DeleteFunc(all(), func(s subject) bool {
		return *keys != "" && !slices.Contains(strings.Split(*keys, ","), s.key)
	})
	if len(o.subjects) == 0 || o.jobs < 1 || o.rounds < 1 {
		return o, errors.New("nothing to run: -subjects names no known one, or -jobs or -rounds is below 1")
	}
	return o, nil
}

// compare measures each subject once a round, so that what else the machine does falls on all of them.
func compare(ctx context.Context, o options) error {
	results := map[string][]figures{}
	for round := range o.rounds {
		for _, s := range o.subjects {
			f, err := measure(ctx, o, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.title, err)
			}
			results[s.key] = append(results[s.key], f)
			_, _ = fmt.Fprintf(os.Stderr, "round %d of %d, %s: %s\n", round+1, o.rounds, s.title, f)
		}
	}
	text := report(o, results)
	if o.page == "" || o.workload == large {
		_, err := fmt.Println(text)
		return err
	}
	return benchmark.WriteResults(o.page, command, text, nil)
}

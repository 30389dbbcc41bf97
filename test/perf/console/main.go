// Console measures what people who look at the console cost the operator: how long its reconciles take under the same work while
// many read and follow pages, and while no one does. It writes the results of docs/benchmarks/console.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// options are the flags.
type options struct {
	rounds   int
	minute   time.Duration
	readers  int
	seed     uint64
	operator string
	page     string
	commit   string
}

func main() { os.Exit(status(os.Args[1:])) }

// status runs the bench with these arguments, and returns the exit status.
func status(args []string) int {
	return benchmark.Main("console", func(ctx context.Context) error {
		if slices.Equal(args, []string{readApart}) {
			return readUntilEnd(ctx, os.Stdin, os.Stdout)
		}
		o, err := parse(args)
		if err != nil {
			return err
		}
		rounds, err := play(ctx, o)
		if err != nil {
			return err
		}
		text := report(o, rounds)
		fmt.Println(text)
		if o.page != "" {
			err = benchmark.WriteResults(o.page, command, text, nil)
		}
		return errors.Join(err, judge(rounds))
	})
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("console", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 4, "how many `rounds`, of a minute without readers and one with them")
	flags.DurationVar(&o.minute, "minute", time.Minute, "how long the minutes are, from 15s")
	flags.IntVar(&o.readers, "readers", 50, "how many `people` read")
	flags.Uint64Var(&o.seed, "seed", 1, "of the first round; each round has the next")
	flags.StringVar(&o.operator, "operator", "bin/tideline", "`file` with the operator")
	flags.StringVar(&o.page, "page", "docs/benchmarks/console.md", "`file` whose results are written; none: they are only printed")
	flags.StringVar(&o.commit, "commit", "", "what the operator was built of")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 || o.rounds > benchmark.MostSeeds || o.minute < shortest || o.readers < 1 {
		return o, fmt.Errorf("-rounds is from 1 to %d, -minute at least %s, and -readers at least 1", benchmark.MostSeeds, shortest)
	}
	return o, nil
}

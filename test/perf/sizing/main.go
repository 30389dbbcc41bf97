// Sizing compares what containers should request by what they were seen using: by Tideline's rules, by the
// recommender of Vertical Pod Autoscaler and by the simple strategy of KRR. Each decides at every start of its tasks
// for six weeks, under the limits that it granted. It writes the tables of docs/benchmarks/sizing.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// enough is how many tasks there are of a seed, in each workload.
const enough = 45

func main() {
	if err := tell(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "sizing:", err)
		os.Exit(1)
	}
}

// tell makes the tables, and writes them into the page or prints them.
func tell(args []string) error {
	flags := flag.NewFlagSet("sizing", flag.ContinueOnError)
	seeds := flags.String("seeds", "", "`numbers` by which tasks are drawn, with commas; none: those of the page")
	tasks := flags.Int("tasks", enough, "`number` of tasks of a seed")
	commit := flags.String("commit", "unknown", "`id` of what is measured")
	only := flags.Int("workload", 0, "`number` of the only workload; 0 for both")
	page := flags.String("page", "", "`file` whose tables are written; none: only printed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen := reported
	if *seeds != "" {
		chosen = nil
		for text := range strings.SplitSeq(*seeds, ",") {
			seed, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return err
			}
			chosen = append(chosen, seed)
		}
	}
	text := table(*tasks, *commit, judgeAll(chosen, *tasks, *only))
	if *page == "" {
		_, err := fmt.Print(text)
		return err
	}
	before, err := os.ReadFile(*page)
	if err != nil {
		return err
	}
	after, err := markdown.ReplaceMarked(string(before), command, text)
	if err != nil {
		return fmt.Errorf("%s: %w", *page, err)
	}
	return os.WriteFile(*page, []byte(after), 0o644)
}

// judgeAll plays the workloads, or only one of them.
func judgeAll(seeds []uint64, tasks, only int) []judged {
	var firstNames []string
	for _, s := range shapes {
		firstNames = append(firstNames, s.name)
	}
	var all []judged
	if only != 2 {
		all = append(all, judged{"Workload 1", firstNames, judgeSeeds(seeds, tasks, draw)})
	}
	if only != 1 {
		all = append(all, judged{"Workload 2", shiftingNames, judgeSeeds(seeds, tasks, drawShifting)})
	}
	return all
}

// Sizing compares what containers should request by what they were seen using: by Tideline's rules, by the recommender of
// Vertical Pod Autoscaler and by the simple strategy of KRR. A thousand tasks are seen for a week, and what they need in the week
// after tells who was right. It writes the tables of docs/benchmarks/sizing.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// enough is how many tasks there are.
const enough = 1000

func main() {
	if err := tell(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "sizing:", err)
		os.Exit(1)
	}
}

// tell makes the tables of a seed, and writes them into the page or prints them.
func tell(args []string) error {
	flags := flag.NewFlagSet("sizing", flag.ContinueOnError)
	seed := flags.Uint64("seed", 1, "`number` by which tasks are drawn")
	page := flags.String("page", "", "`file` whose tables are written; none: only printed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text := table(*seed, playAll(*seed, enough))
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

// playAll draws tasks by a seed and shows them to all contestants.
func playAll(seed uint64, tasks int) []outcome {
	all := make([]outcome, tasks)
	for i := range all {
		all[i] = play(draw(seed, i))
	}
	return all
}

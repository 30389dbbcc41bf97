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

const (
	// enough is how many tasks there are of a seed.
	enough = 1000
	// seeds is how many there are, one after another, of which the tables have all of the first.
	seeds = 4
)

func main() {
	if err := tell(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "sizing:", err)
		os.Exit(1)
	}
}

// tell makes the tables of a seed, and writes them into the page or prints them.
func tell(args []string) error {
	flags := flag.NewFlagSet("sizing", flag.ContinueOnError)
	seed := flags.Uint64("seed", 1, "`number` by which tasks are drawn, and the next three")
	page := flags.String("page", "", "`file` whose tables are written; none: only printed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var all []played
	for i := range uint64(seeds) {
		all = append(all, playAll(*seed+i, enough))
	}
	text := table(all)
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

// played is what became of the tasks of a seed.
type played struct {
	seed     uint64
	outcomes []outcome
}

// playAll draws tasks by a seed and shows them to all contestants.
func playAll(seed uint64, tasks int) played {
	all := make([]outcome, tasks)
	for i := range all {
		all[i] = play(draw(seed, i))
	}
	return played{seed, all}
}

// Bench-merge-line compares ways to start merges on too few machines: how many models are late, how long merges wait. The
// planner of merges and the model of capacity decide for Tideline; all else is simulated. It writes results into
// docs/benchmarks/merge.md, and a drawing and a list of all runs beside it.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// command is what writes the results, between the page's marks.
const command = "make bench-merge-line"

func main() {
	page := flag.String("page", "docs/benchmarks/merge.md", "the page whose results are written")
	commit := flag.String("commit", "", "the commit that is measured")
	only := flag.Bool("deadlocks", false, "only look for deadlocks, in runs beyond the others")
	fewest := flag.Bool("fewest", false, "only look for the smallest pool in which no model is late")
	beside := flag.String("beside", "", "only simulate what make bench-merge measured, which printed this `file`")
	flag.Parse()
	debug.SetGCPercent(800) //nolint:mnd // Little lives, much is made: collecting it would be a third of the work.
	var err error
	switch {
	case *only:
		err = seekDeadlocks(*page, *commit)
	case *fewest:
		err = seekFewest(*page, *commit)
	case *beside != "":
		err = agree(*page, *beside)
	default:
		err = compare(*page, *commit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func tell(done, all int) { fmt.Fprintf(os.Stderr, "\r%d of %d runs", done, all) }

// compare runs all subjects, and writes their tables, the drawing and the list.
func compare(page, commit string) error {
	results, err := measure(tell)
	if err != nil {
		return err
	}
	return benchmark.WriteResults(page, command, tables(commit, results), map[string]string{
		"merge-simulated.svg": drawing(results), "merge-simulated.csv": list(results),
	})
}

// further are seeds beyond those that are compared. With these, merges could go ahead in 10,000 hours in all.
var further = []uint64{9, 10, 11}

// seekDeadlocks looks for deadlocks with the further seeds, where room is least.
func seekDeadlocks(page, commit string) error {
	deadlocks := make([]int, len(further))
	err := benchmark.RunAll(len(further), func(i int) error {
		w := drawWorkload(further[i])
		r, err := policy{learns: true}.play(w, w.pool(conditions[0].times))
		if err != nil {
			return fmt.Errorf("seed %d: %w", further[i], err)
		}
		deadlocks[i] = r.deadlocks
		return nil
	}, tell)
	if err != nil {
		return err
	}
	sum := 0
	for _, n := range deadlocks {
		sum += n
	}
	hours := float64(len(further)) * horizon.Hours()
	before := 2 * float64(len(conditions)*len(seeds)) * horizon.Hours() // two ways to go ahead
	return benchmark.WriteResults(page, "make bench-merge-deadlocks", fmt.Sprintf("Deadlocks in %.0f further hours, with durations "+
		"learned and the smallest pool, at commit %s: %d. With those above, merges could go ahead in %.0f hours.\n",
		hours, commit, sum, before+hours), nil)
}

// subject is a way to start merges.
type subject struct {
	name string
	play func(workload, int32) (*record, error)
}

// Where subjects stand that others are compared with.
const volcano, knowing, plainLine, byTimeouts, learned = 0, 1, 2, 3, 4

var subjects = []subject{
	{"gangs that wait (Volcano)", anyFIFO.run},
	{"first fit, the latest first", firstFit.run},
	{"the line, strict", policy{strict: true}.play},
	{"going ahead, by timeouts", policy{}.play},
	{"going ahead, durations learned", policy{learns: true}.play},
}

func (o order) run(w workload, machines int32) (*record, error) { return o.play(w, machines), nil }

// condition is what is merged, and where.
type condition struct {
	name  string
	draw  func(uint64) workload
	times float64
}

// conditions end within a quarter of an hour together. They stayed as they were when the first whole run turned out to be wrong.
var conditions = []condition{
	{"mixed", drawWorkload, 1.3},
	{"mixed", drawWorkload, 1.6},
	{"two as large as the pool", twoLarge, 0},
}

var seeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8}

// result is one run.
type result struct {
	condition, subject int
	seed               uint64
	summary
}

// measure runs all subjects through all conditions with all seeds, on all cores.
func measure(tell func(done, all int)) ([]result, error) {
	var all []result
	for c := range conditions {
		for s := range subjects {
			for _, seed := range seeds {
				all = append(all, result{condition: c, subject: s, seed: seed})
			}
		}
	}
	return all, benchmark.RunAll(len(all), func(i int) error {
		r := &all[i]
		w := conditions[r.condition].draw(r.seed)
		rec, err := subjects[r.subject].play(w, w.pool(conditions[r.condition].times))
		if err != nil {
			return fmt.Errorf("%s, seed %d: %w", subjects[r.subject].name, r.seed, err)
		}
		r.summary = rec.summarize()
		return nil
	}, tell)
}

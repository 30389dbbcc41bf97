// Outcome plays a week of a public trace on a simulated cluster. So far it says what the workload is: docs/benchmarks/outcome.md
// has the rules.
package main

import (
	"flag"
	"fmt"
	"os"
)

var (
	loads = []float64{0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1}
	seeds = []uint64{1, 2, 3, 4, 5}
)

func main() {
	path := flag.String("trace", "../shared/data/philly.csv", "`file` of the jobs of Philly")
	days := flag.Int("days", 7, "`number` of days that are played")
	flag.Parse()
	if err := tell(*path, *days); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "outcome:", err)
		os.Exit(1)
	}
}

func tell(path string, days int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	trace, err := readTrace(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, load := range loads {
		for _, seed := range seeds {
			jobs := draw(trace, load, seed, days)
			_, _ = fmt.Printf("load %.1f, seed %d: %d jobs offer %.3f of the cluster\n", load, seed, len(jobs), offered(jobs, days))
		}
	}
	return nil
}

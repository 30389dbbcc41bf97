// Outcome plays a public trace on a simulated cluster, under Volcano's own scheduler and the operator's own planner, and prints
// what each subject made of it. docs/benchmarks/outcome.md has the rules.
package main

import (
	"context"
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
	days := flag.Int("days", 1, "`number` of days that are played")
	load := flag.Float64("load", 0.9, "offered load")
	only := flag.String("only", "", "`name` of the only subject; none: all")
	many := flag.Int("seeds", 2, "`number` of seeds")
	flag.Parse()
	if err := tell(*path, *days, *load, *only, *many); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "outcome:", err)
		os.Exit(1)
	}
}

func tell(path string, days int, load float64, only string, many int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	trace, err := readTrace(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	folder, err := os.MkdirTemp("", "outcome")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	ctx := context.Background()
	p := &player{}
	if p.program, p.module, err = buildVolcano(ctx, folder); err != nil {
		return err
	}
	for _, e := range entrants {
		for _, seed := range seeds[:many] {
			if only != "" && only != e.name {
				continue
			}
			f, err := p.play(ctx, e, draw(trace, load, seed, days), days)
			if err != nil {
				return fmt.Errorf("%s, load %.1f, seed %d: %w", e.name, load, seed, err)
			}
			_, _ = fmt.Printf("%s, load %.1f, seed %d: %+v\n", e.name, load, seed, f)
		}
	}
	return nil
}

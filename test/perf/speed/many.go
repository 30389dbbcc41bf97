package main

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// ofMany are the columns of the table that has a row for each number of jobs.
func ofMany() []column {
	shown := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return slices.Contains([]string{
			"Volcano's controllers, ms a job", "scheduler, ms a job", "at the end, MB", "pages of files in it, MB", "CPU at rest, ms",
		}, c.title)
	})
	return append(shown,
		column{"CPU at rest, % of a processor", 2, func(f figures) float64 { return 100 * f.idle.Seconds() / f.rested.Seconds() }},
		column{"from a restart to the first write, s", 1, func(f figures) float64 { return f.restart.Seconds() }},
	)
}

// reportMany is what runs with several numbers of jobs say on the page, one row each.
func reportMany(o options, runs []figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Jobs of %d to %d workers, all at once; %s of rest; at commit %s; %d processors, %s/%s.\n\n",
		least, most, o.rest, o.commit, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	row := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head := []string{"jobs", "pods", "nodes"}
	for _, c := range ofMany() {
		head = append(head, c.title)
	}
	row(head...)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, f := range runs {
		cells := []string{strconv.Itoa(f.jobs), strconv.Itoa(most * f.jobs), strconv.Itoa(nodesFor(f.jobs))}
		for _, c := range ofMany() {
			cells = append(cells, fmt.Sprintf("%.*f", c.places, c.of(f)))
		}
		row(cells...)
	}
	b.WriteString("\n![Processor time and memory of the operator, by jobs](speed.svg)\n")
	return b.String()
}

// drawMany draws the operator's processor time and memory over jobs.
func drawMany(runs []figures) string {
	even := runs[0].cpu.Seconds() / float64(runs[0].jobs) // What a job of the smallest run costs.
	var cpu, same, memory []benchmark.Point
	for _, f := range runs {
		jobs := float64(f.jobs)
		cpu = append(cpu, benchmark.Point{jobs, f.cpu.Seconds()})
		same = append(same, benchmark.Point{jobs, even * jobs})
		memory = append(memory, benchmark.Point{jobs, float64(f.memory.peak) / 1e6})
	}
	return benchmark.DrawCharts([]benchmark.Chart{
		{Title: "processor time until all ran, s", Across: "jobs", Lines: []benchmark.Line{
			{Name: "measured", Points: cpu}, {Name: "if each job cost what one of the smallest run does", Points: same},
		}},
		{Title: "most memory, MB", Across: "jobs", Lines: []benchmark.Line{{Name: "measured", Points: memory}}},
	})
}

package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A column is a figure of the table, with so many places behind the point.
type column struct {
	title  string
	places int
	of     func(f figures) float64
}

func perJob(of func(f figures) int) func(figures) float64 {
	return func(f figures) float64 { return float64(of(f)) / float64(f.jobs) }
}

func msPerJob(of func(f figures) time.Duration) func(figures) float64 {
	return func(f figures) float64 { return of(f).Seconds() * 1000 / float64(f.jobs) }
}

var columns = []column{
	{"all running, s", 1, func(f figures) float64 { return f.running.Seconds() }},
	{"writes a job", 1, perJob(func(f figures) int { return f.made.writes })},
	{"events a job", 1, perJob(func(f figures) int { return f.made.events })},
	{"reads a job", 1, perJob(func(f figures) int { return f.made.reads })},
	{"CPU, ms a job", 1, msPerJob(func(f figures) time.Duration { return f.cpu })},
	{"Volcano's controllers, ms a job", 1, msPerJob(func(f figures) time.Duration { return f.controllers })},
	{"scheduler, ms a job", 0, msPerJob(func(f figures) time.Duration { return f.scheduler })},
	{"API server, ms a job", 0, msPerJob(func(f figures) time.Duration { return f.apiServer })},
	{"most memory, MB", 0, func(f figures) float64 { return float64(f.memory.peak) / 1e6 }},
	{"at the end, MB", 0, func(f figures) float64 { return float64(f.memory.now) / 1e6 }},
	{"pages of files in it, MB", 0, func(f figures) float64 { return float64(f.memory.files) / 1e6 }},
	{"requests at rest", 0, func(f figures) float64 { return float64(f.rest.writes + f.rest.events + f.rest.reads) }},
	{"CPU at rest, ms", 0, func(f figures) float64 { return float64(f.idle.Milliseconds()) }},
	{"deleted, s", 1, func(f figures) float64 { return f.deleted.Seconds() }},
	{"requests to delete, a job", 1, perJob(func(f figures) int { return f.removed.writes + f.removed.events + f.removed.reads })},
}

// ratios are what Tideline is held to, and by which figure.
var ratios = []struct {
	title string
	of    func(f figures) float64
}{
	{"all running", columns[0].of}, {"CPU", columns[4].of}, {"most memory", columns[8].of}, {"deleted", columns[13].of},
}

// report is what the run says on the page. Values of rounds stand beside each other.
func report(o options, results map[string][]figures) string {
	if o.workload == large {
		return reportMany(o, results[tideline])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d jobs of %d to %d workers, all at once; %d rounds; %s of rest; at commit %s; %d processors, %s/%s.\n\n",
		o.sizes[0], least, most, o.rounds, o.rest, o.commit, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	row := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head := []string{"subject"}
	for _, c := range columns {
		head = append(head, c.title)
	}
	row(head...)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, s := range o.subjects {
		cells := []string{s.title}
		for _, c := range columns {
			cells = append(cells, values(results[s.key], func(f figures) string {
				if f.stalled != "" {
					return "–"
				}
				return fmt.Sprintf("%.*f", c.places, c.of(f))
			}))
		}
		row(cells...)
	}
	for _, s := range o.subjects {
		for i, f := range results[s.key] {
			if f.stalled != "" {
				fmt.Fprintf(&b, "\nRound %d of %s came to no end: %s.\n", i+1, s.title, f.stalled)
			}
		}
	}
	if len(results[tideline]) == 0 || len(results[volcanoJob]) == 0 || len(results[trainingOperator]) == 0 {
		return b.String()
	}
	b.WriteString("\n| Tideline, as a multiple | of Volcano Job's | of training-operator's |\n|---|---|---|\n")
	for _, r := range ratios {
		ours := results[tideline]
		row(r.title, multiple(ours, results[volcanoJob], r.of), multiple(ours, results[trainingOperator], r.of))
	}
	return b.String()
}

func values(all []figures, say func(figures) string) string {
	var said []string
	for _, f := range all {
		said = append(said, say(f))
	}
	if len(slices.Compact(slices.Clone(said))) == 1 && said[0] == "0" {
		return "0"
	}
	return strings.Join(said, ", ")
}

// multiple is a figure as a multiple of another subject's in the same round.
func multiple(ours, theirs []figures, of func(figures) float64) string {
	var said []string
	for i := range ours {
		if theirs[i].stalled != "" {
			said = append(said, "–")
			continue
		}
		said = append(said, fmt.Sprintf("%.2f", of(ours[i])/of(theirs[i])))
	}
	return strings.Join(said, ", ")
}

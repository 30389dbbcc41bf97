package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// ofMany are the columns of the table that has a row for each number of jobs.
func ofMany(o options) []column {
	shown := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return slices.Contains([]string{
			"Volcano's controllers, ms a job", "scheduler, ms a job", "at the end, MB", "pages of files in it, MB", "CPU at rest, ms",
		}, c.title)
	})
	return append(shown,
		column{"CPU at rest, % of a processor", 2, func(f figures) float64 { return 100 * f.idle.Seconds() / o.rest.Seconds() }},
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
	for _, c := range ofMany(o) {
		head = append(head, c.title)
	}
	row(head...)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, f := range runs {
		cells := []string{fmt.Sprint(f.jobs), fmt.Sprint(most * f.jobs), fmt.Sprint(nodesFor(f.jobs))}
		for _, c := range ofMany(o) {
			cells = append(cells, fmt.Sprintf("%.*f", c.places, c.of(f)))
		}
		row(cells...)
	}
	b.WriteString("\n![Processor time and memory of the operator, by jobs](speed.svg)\n")
	return b.String()
}

// Measures of the drawing, in pixels.
const (
	panelWidth, panelHeight = 300.0, 180.0
	panelLeft, panelTop     = 50.0, 40.0
	panelStep               = 380.0
)

// drawMany draws the operator's processor time and memory over jobs. A line from no jobs to the smallest run shows where the larger
// ones would be, if each job cost the same.
func drawMany(runs []figures) string {
	d := benchmark.NewDrawing(2*panelStep, panelTop+panelHeight+70)
	measured, even := benchmark.Stroke{Colour: "#3d85c6", Dashes: "none"}, benchmark.Stroke{Colour: "#888888", Dashes: "2 3"}
	for i, panel := range []struct {
		title string
		of    func(f figures) float64
	}{
		{"processor time until all ran, s", func(f figures) float64 { return f.cpu.Seconds() }},
		{"most memory, MB", func(f figures) float64 { return float64(f.memory.peak) / 1e6 }},
	} {
		left := panelLeft + float64(i)*panelStep
		jobs, top := 0.0, 0.0
		for _, f := range runs {
			jobs, top = max(jobs, float64(f.jobs)), max(top, panel.of(f))
		}
		perJob := panel.of(runs[0]) / float64(runs[0].jobs)
		if i == 0 {
			top = max(top, perJob*jobs)
		}
		at := func(n, value float64) benchmark.Point {
			return benchmark.Point{left + panelWidth*n/jobs, panelTop + panelHeight*(1-value/top)}
		}
		for _, share := range []float64{0, 0.5, 1} {
			d.Grid(left, at(0, top*share)[1], panelWidth, math.Round(top*share))
			d.Text(at(jobs*share, 0)[0], panelTop+panelHeight+18, "middle", fmt.Sprintf("%.0f jobs", jobs*share))
		}
		d.Text(left, panelTop-16, "start", panel.title)
		var points []benchmark.Point
		for _, f := range runs {
			points = append(points, at(float64(f.jobs), panel.of(f)))
		}
		d.Curve(points, measured)
		if i == 0 {
			d.Curve([]benchmark.Point{at(0, 0), at(jobs, perJob*jobs)}, even)
		}
	}
	d.Legend(panelLeft, panelTop+panelHeight+50, measured, "measured")
	d.Legend(panelLeft+panelStep/2, panelTop+panelHeight+50, even, "if each job cost what one of the smallest run does")
	return d.String()
}

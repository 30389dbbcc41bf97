package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// command is what writes the results of the page.
const command = "make bench-outcome"

// column is a figure of the page: what its unit is a multiple of, and how it is written.
type column struct {
	name  string
	value func(*result) float64
	scale float64
	form  string
}

var columns = []column{
	{"goodput, %", func(r *result) float64 { return r.Goodput }, 100, "%.1f"},
	{"allocation, %", func(r *result) float64 { return r.Allocation }, 100, "%.1f"},
	{"lost, %", func(r *result) float64 { return r.Lost }, 100, "%.2f"},
	{"waiting of one GPU, median, min", func(r *result) float64 { return r.WaitP50[0] }, 1.0 / 60, "%.1f"},
	{"99th", func(r *result) float64 { return r.WaitP99[0] }, 1.0 / 60, "%.0f"},
	{"of several, median, min", func(r *result) float64 { return r.WaitP50[1] }, 1.0 / 60, "%.1f"},
	{"99th", func(r *result) float64 { return r.WaitP99[1] }, 1.0 / 60, "%.0f"},
	{"evictions a day", func(r *result) float64 { return r.EvictionsDay }, 1, "%.0f"},
	{"changes of size a day", func(r *result) float64 { return r.ChangesDay }, 1, "%.0f"},
	{"fragmentation, %", func(r *result) float64 { return r.Fragmentation }, 100, "%.0f"},
	{"fairness", func(r *result) float64 { return r.Fairness }, 1, "%.3f"},
}

// condition is what a table is about.
type condition struct {
	days int
	load float64
}

// tables writes the results as Markdown, a table for each window and load.
func tables(all []result) string {
	var commits []string
	var conditions []condition
	for i := range all {
		commits = append(commits, all[i].Commit)
		conditions = append(conditions, condition{all[i].Days, all[i].Load})
	}
	slices.Sort(commits)
	slices.SortFunc(conditions, func(a, b condition) int { return cmp.Or(cmp.Compare(b.days, a.days), cmp.Compare(a.load, b.load)) })
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, at commit %s.\n", len(all), strings.Join(slices.Compact(commits), ", "))
	for _, of := range slices.Compact(conditions) {
		b.WriteString(table(of, pick(all, of)))
	}
	return b.String()
}

func pick(all []result, of condition) map[string][]result {
	some := map[string][]result{}
	for i := range all {
		if all[i].Days == of.days && all[i].Load == of.load {
			some[all[i].Subject] = append(some[all[i].Subject], all[i])
		}
	}
	return some
}

func table(of condition, results map[string][]result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nAn offered load of %.1f, the first %s of the week:\n\n| subject | seeds |",
		of.load, text.FormatCount(of.days, "day"))
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString(" Tideline's goodput ÷ its |\n|---|---|" + strings.Repeat("---|", len(columns)+1) + "\n")
	for _, e := range entrants {
		rs := results[e.name]
		if len(rs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %d |", e.name, len(rs))
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", c.write(rs))
		}
		fmt.Fprintf(&b, " %s |\n", goodputOver(results[ourName], rs))
	}
	return b.String()
}

// goodputOver is the ratio of two subjects' goodput, seed by seed, with half of its interval.
func goodputOver(a, b []result) string {
	var ratios []float64
	for i := range a {
		for j := range b {
			if a[i].Seed == b[j].Seed {
				ratios = append(ratios, a[i].Goodput/b[j].Goodput)
			}
		}
	}
	middle, half := benchmark.MeanInterval(ratios)
	switch {
	case len(ratios) == 0:
		return ""
	case len(ratios) == 1:
		return fmt.Sprintf("%.2f", middle)
	}
	return fmt.Sprintf("%.2f ± %.2f", middle, half)
}

// write is the mean of a figure over the seeds, with half of its interval.
func (c column) write(of []result) string {
	middle, half := c.interval(of)
	text := fmt.Sprintf(c.form, middle)
	if len(of) > 1 {
		text += " ± " + fmt.Sprintf(c.form, half)
	}
	return text
}

// drawing draws figures over loads, of runs of so many days: the mean over the seeds.
func drawing(all []result, days int, loads []float64) string {
	charts := make([]benchmark.Chart, 0, 4)
	for _, name := range []string{"goodput, %", "allocation, %", "of several, median, min", "lost, %"} {
		c := columns[slices.IndexFunc(columns, func(c column) bool { return c.name == name })]
		chart := benchmark.Chart{Title: drawn[name], Across: "offered load", From: loads[0]}
		for _, e := range entrants {
			line := benchmark.Line{Name: e.name}
			for _, load := range loads {
				if of := pick(all, condition{days, load})[e.name]; len(of) > 0 {
					middle, _ := c.interval(of)
					line.Points = append(line.Points, benchmark.Point{load, middle})
				}
			}
			if len(line.Points) > 0 {
				chart.Lines = append(chart.Lines, line)
			}
		}
		charts = append(charts, chart)
	}
	return benchmark.DrawCharts(charts)
}

// drawn are titles of charts, by column.
var drawn = map[string]string{
	"goodput, %": "goodput, %", "allocation, %": "allocation, %",
	"of several, median, min": "median wait for several GPUs, min", "lost, %": "lost to changes of size, % of GPU-time",
}

// interval is the mean of a figure over the seeds, and half of its interval.
func (c column) interval(of []result) (middle, half float64) {
	values := make([]float64, 0, len(of))
	for i := range of {
		values = append(values, c.scale*c.value(&of[i]))
	}
	return benchmark.MeanInterval(values)
}

// curves draws the longest window that was played at several loads, and returns what refers to the drawing; nothing if there is
// none.
func curves(all []result) (words string, files map[string]string) {
	played := map[int][]float64{}
	for i := range all {
		if r := &all[i]; !slices.Contains(played[r.Days], r.Load) {
			played[r.Days] = append(played[r.Days], r.Load)
		}
	}
	for _, days := range slices.Backward(slices.Sorted(maps.Keys(played))) {
		if len(played[days]) < 2 {
			continue
		}
		first := "day"
		if days > 1 {
			first = text.FormatCount(days, "day")
		}
		slices.Sort(played[days])
		return fmt.Sprintf("![Goodput, allocation, waiting and work lost over the offered load](outcome.svg)\n\n"+
				"Curves: means over the seeds, of the first %s.\n\n", first),
			map[string]string{"outcome.svg": drawing(all, days, played[days])}
	}
	return "", nil
}

// writePage writes what a file of results has into a page.
func writePage(page, results string) error {
	all, err := readResults[result](results)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s has no results", results)
	}
	words, files := curves(all)
	return benchmark.WriteResults(page, command, words+tables(all), files)
}

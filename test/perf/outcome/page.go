package main

import (
	"cmp"
	"fmt"
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
	var values []float64
	for i := range of {
		values = append(values, c.scale*c.value(&of[i]))
	}
	middle, half := benchmark.MeanInterval(values)
	text := fmt.Sprintf(c.form, middle)
	if len(values) > 1 {
		text += " ± " + fmt.Sprintf(c.form, half)
	}
	return text
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
	return benchmark.WriteResults(page, command, tables(all), nil)
}

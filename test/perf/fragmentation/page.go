package main

import (
	"fmt"
	"strings"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// column is a figure of the page.
type column struct {
	name  string
	value func(*figures) float64
	form  string
}

var columns = []column{
	{"GPUs allocated, %", func(f *figures) float64 { return 100 * f.Allocated }, "%.1f"},
	{"unusable, % of all", func(f *figures) float64 { return 100 * f.Unusable }, "%.2f"},
	{"unusable, % of free", func(f *figures) float64 { return 100 * f.OfFree }, "%.0f"},
	{"by gangs, % of free", func(f *figures) float64 { return 100 * f.Gangs }, "%.0f"},
	{"pods of 8 that fit", func(f *figures) float64 { return float64(f.Whole) }, "%.0f"},
}

// tables writes the results as Markdown: for each moment and figure both subjects, and their ratio seed by seed.
func tables(commit string, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, at commit %s.\n\n", len(results)/len(subjects), commit)
	b.WriteString("| asked for, % of GPUs | figure | stock | ours | ours less stock |\n|---|---|---|---|---|\n")
	for m, moment := range moments {
		for _, c := range columns {
			var of [2][]float64
			var differences []float64
			for i := range results {
				v := c.value(&results[i].at[m])
				of[i%2] = append(of[i%2], v)
				if i%2 == 1 {
					differences = append(differences, v-of[0][len(of[0])-1])
				}
			}
			fmt.Fprintf(&b, "| %.0f | %s | %s | %s | %s |\n",
				100*moment, c.name, say(c.form, of[0]), say(c.form, of[1]), say(c.form, differences))
		}
	}
	b.WriteString("\nMeans with 95 % intervals over the seeds.\n")
	return b.String()
}

func say(form string, values []float64) string {
	middle, half := benchmark.MeanInterval(values)
	return fmt.Sprintf(form+" ± "+form, middle, half)
}

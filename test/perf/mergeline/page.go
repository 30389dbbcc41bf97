package main

import (
	"fmt"
	"strings"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// columns are what the tables tell of each subject.
var columns = []struct {
	title string
	of    func(summary) float64
	as    string
}{
	{"late", func(s summary) float64 { return s.late }, "%.1f"},
	{"late at the start", func(s summary) float64 { return s.early }, "%.1f"},
	{"age p50", func(s summary) float64 { return s.age50 }, "%.2f"},
	{"age p99", func(s summary) float64 { return s.age99 }, "%.2f"},
	{"p99 of large ones", func(s summary) float64 { return s.large99 }, "%.2f"},
	{"wait p99, min", func(s summary) float64 { return s.wait99 }, "%.0f"},
	{"machines idle beside work", func(s summary) float64 { return s.idle }, "%.1f"},
	{"deadlocks", func(s summary) float64 { return s.deadlocks }, "%.0f"},
}

// tables writes the results as Markdown.
func tables(commit string, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs of %.0f hours, %d seeds each, at commit %s. Means with 95 %% intervals.\n", len(results),
		horizon.Hours(), len(seeds), commit)
	for c := range conditions {
		writeTable(&b, c, results)
		writePairs(&b, c, results)
	}
	hours, deadlocks := 0.0, 0.0
	for _, r := range results {
		if r.subject > plainLine {
			hours, deadlocks = hours+horizon.Hours(), deadlocks+r.deadlocks
		}
	}
	fmt.Fprintf(&b, "\nDeadlocks in %.0f hours in which merges could go ahead: %.0f. [All runs](merge-simulated.csv), [as a "+
		"drawing](merge-simulated.svg).\n", hours, deadlocks)
	return b.String()
}

func writeTable(b *strings.Builder, c int, results []result) {
	with := conditions[c]
	sum := 0.0
	for _, seed := range seeds {
		w := with.draw(seed)
		sum += float64(w.pool(with.times)) / w.bound()
	}
	fmt.Fprintf(b, "\n**Models %s, a pool of %.2f × the bound:**\n\n| who starts merges |", with.name, sum/float64(len(seeds)))
	for _, column := range columns {
		fmt.Fprintf(b, " %s |", column.title)
	}
	b.WriteString(" went ahead | a head's delay p50, p99, most, min |\n|---|")
	b.WriteString(strings.Repeat("---|", len(columns)+2) + "\n") //nolint:mnd // the two after them
	for s := range subjects {
		of := choose(results, c, s)
		fmt.Fprintf(b, "| %s |", subjects[s].name)
		for _, column := range columns {
			middle, half := benchmark.MeanInterval(values(of, column.of))
			fmt.Fprintf(b, " "+column.as+" ± "+column.as+" |", middle, half)
		}
		if s < plainLine {
			b.WriteString(" | |\n")
			continue
		}
		p50, _ := benchmark.MeanInterval(values(of, func(s summary) float64 { return s.delay50 }))
		p99, _ := benchmark.MeanInterval(values(of, func(s summary) float64 { return s.delay99 }))
		went, _ := benchmark.MeanInterval(values(of, func(s summary) float64 { return s.ahead }))
		fmt.Fprintf(b, " %.0f | %.0f, %.0f, %.0f |\n", went, p50, p99, most(values(of, func(s summary) float64 { return s.delayMost })))
	}
}

// pairs are who is compared with whom, on the same workload.
var pairs = []struct {
	a, b int
	part float64 // of what b has
}{
	{byTimeouts, plainLine, 1}, {learned, plainLine, 1}, {learned, plainLine, 0.5}, {learned, byTimeouts, 1},
	{plainLine, volcano, 1}, {learned, volcano, 1}, {learned, knowing, 1},
}

// writePairs writes differences by seed. What has an interval with zero in it may be chance.
func writePairs(b *strings.Builder, c int, results []result) {
	b.WriteString("\n| difference, by seed |")
	for _, column := range columns {
		fmt.Fprintf(b, " %s |", column.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, pair := range pairs {
		part := ""
		if pair.part != 1 {
			part = fmt.Sprintf("%.1f × ", pair.part)
		}
		fmt.Fprintf(b, "| %s − %s%s |", subjects[pair.a].name, part, subjects[pair.b].name)
		x, y := choose(results, c, pair.a), choose(results, c, pair.b)
		for _, column := range columns {
			var less []float64
			for i := range x {
				less = append(less, column.of(x[i].summary)-pair.part*column.of(y[i].summary))
			}
			middle, half := benchmark.MeanInterval(less)
			fmt.Fprintf(b, " "+column.as+" ± "+column.as+" |", middle, half)
		}
		b.WriteString("\n")
	}
}

// list has one run a line.
func list(results []result) string {
	var b strings.Builder
	b.WriteString("models,pool ÷ bound,who starts merges,seed,late,late at the start,age p50,age p99,p99 of large ones," +
		"wait p99 min,idle,deadlocks,delay p50 min,delay p99 min,delay most min,went ahead,stood back\n")
	for _, r := range results {
		with := conditions[r.condition]
		fmt.Fprintf(&b, "%s,%g,%q,%d", with.name, with.times, subjects[r.subject].name, r.seed)
		for _, v := range []float64{r.late, r.early, r.age50, r.age99, r.large99, r.wait99, r.idle, r.deadlocks, r.delay50, r.delay99,
			r.delayMost, r.ahead, r.stoodBack} {
			fmt.Fprintf(&b, ",%.4g", v)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func choose(results []result, condition, subject int) []result {
	var some []result
	for _, r := range results {
		if r.condition == condition && r.subject == subject {
			some = append(some, r)
		}
	}
	return some
}

func values(of []result, what func(summary) float64) []float64 {
	var all []float64
	for _, r := range of {
		all = append(all, what(r.summary))
	}
	return all
}

func most(of []float64) float64 {
	largest := 0.0
	for _, v := range of {
		largest = max(largest, v)
	}
	return largest
}

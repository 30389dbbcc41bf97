package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// command is what writes the tables of the page, between its marks.
const command = "make bench-merge"

// table writes the results, which are in order of strategy and pool, as Markdown: a row for each strategy.
func table(e experiment, results []result) string {
	var b strings.Builder
	b.WriteString("| merges | fewest machines that keep every model fresh | ÷ work per interval |" +
		" models late, by machines | deadlocks | wait p50, min | wait p99, min |\n|---|---|---|---|---|---|---|\n")
	for _, s := range byStrategy(results) {
		machines, share := "more than tried", ""
		if pool := leastPool(s); pool > 0 {
			machines, share = strconv.Itoa(pool), fmt.Sprintf("%.2f", float64(pool)/e.bound())
		}
		var late []string
		deadlocks, largest := 0, s[len(s)-1]
		for _, r := range s {
			late = append(late, fmt.Sprintf("%d: %d", r.pool, r.late))
			deadlocks += r.deadlocks
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %.0f | %.0f |\n", s[0].strategy.title, machines, share, strings.Join(late, ", "),
			deadlocks, largest.waitP50.Minutes(), largest.waitP99.Minutes())
	}
	return b.String()
}

// header names the columns of the file of results: hours, machine-hours and minutes.
const header = "scale,merges,machines,late,oldest_h,deadlocks,merged,held_h,worked_h,wait_p50_min,wait_p99_min,commit"

// encoded are the results as the lines of that file.
func encoded(scale float64, results []result) string {
	lines := []string{header}
	for _, r := range results {
		lines = append(lines, fmt.Sprintf("%g,%s,%d,%d,%.1f,%d,%d,%.0f,%.0f,%.0f,%.0f,%s", scale, r.strategy.key, r.pool, r.late,
			r.oldest.Hours(), r.deadlocks, r.merged, r.held, r.worked, r.waitP50.Minutes(), r.waitP99.Minutes(), r.commit))
	}
	return strings.Join(lines, "\n") + "\n"
}

// decoded are the results of such a file that were made at a scale.
func decoded(file string, scale float64) []result {
	var all []result
	for line := range strings.Lines(file) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		if len(cells) != strings.Count(header, ",")+1 {
			continue
		}
		at := slices.IndexFunc(strategies, func(s strategy) bool { return s.key == cells[1] })
		if at < 0 || cells[0] != fmt.Sprintf("%g", scale) {
			continue
		}
		var n [9]float64
		for i := range n {
			n[i], _ = strconv.ParseFloat(cells[i+2], 64) // The file is our own.
		}
		of := func(amount float64, unit time.Duration) time.Duration { return time.Duration(amount * float64(unit)) }
		all = append(all, result{
			strategy: strategies[at], pool: int(n[0]), late: int(n[1]), oldest: of(n[2], time.Hour), deadlocks: int(n[3]),
			merged: int(n[4]), held: n[5], worked: n[6], waitP50: of(n[7], time.Minute), waitP99: of(n[8], time.Minute),
			commit: cells[len(cells)-1],
		})
	}
	return all
}

// join adds results to those before, of which it replaces those of the same strategy and pool, in the order of the tables.
func join(before, now []result) []result {
	all := slices.Clone(now)
	for _, b := range before {
		if !slices.ContainsFunc(now, func(r result) bool { return r.strategy.key == b.strategy.key && r.pool == b.pool }) {
			all = append(all, b)
		}
	}
	order := func(r result) int {
		return slices.IndexFunc(strategies, func(s strategy) bool { return s.key == r.strategy.key })
	}
	slices.SortFunc(all, func(a, b result) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.pool, b.pool)) })
	return all
}

// byStrategy splits results where the strategy changes.
func byStrategy(results []result) [][]result {
	var out [][]result
	for _, r := range results {
		if n := len(out); n > 0 && out[n-1][0].strategy.key == r.strategy.key {
			out[n-1] = append(out[n-1], r)
		} else {
			out = append(out, []result{r})
		}
	}
	return out
}

// leastPool is the smallest pool from which on no model was late, 0 if there is none.
func leastPool(rising []result) int {
	least := 0
	for _, r := range rising {
		switch {
		case r.late > 0:
			least = 0
		case least == 0:
			least = r.pool
		}
	}
	return least
}

// conditions says under which the results were made.
func conditions(scale float64, cost time.Duration, results []result) string {
	var commits []string
	for _, r := range results {
		if !slices.Contains(commits, r.commit) {
			commits = append(commits, r.commit)
		}
	}
	at := "commit"
	if len(commits) > 1 {
		at = "commits"
	}
	return fmt.Sprintf("Measured at %s %s. %s With room free, creating, placing and starting a merge's four pods took %.1f "+
		"simulated minutes (median).\n", at, strings.Join(commits, ", "), stoodFor(scale), cost.Minutes())
}

// stoodFor says how fast time went.
func stoodFor(scale float64) string {
	return fmt.Sprintf("One second stood for %.1f simulated minutes.", scale/60)
}

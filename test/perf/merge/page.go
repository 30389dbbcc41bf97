package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// command is what writes the tables of the page, between its marks.
const command = "make bench-merge"

// table writes the results, which are in order of strategy and pool, as Markdown: the least pool of each strategy, then all.
func table(e experiment, results []result) string {
	var b strings.Builder
	b.WriteString("| merges | fewest machines that keep every model fresh | ÷ work per interval |\n|---|---|---|\n")
	for _, s := range byStrategy(results) {
		machines, share := "more than tried", ""
		if pool := leastPool(s); pool > 0 {
			machines, share = strconv.Itoa(pool), fmt.Sprintf("%.2f", float64(pool)/e.bound())
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s[0].strategy.title, machines, share)
	}
	b.WriteString("\n| merges | machines | models late | deadlocks |" +
		" machine-hours held | worked | wait p50, min | wait p99, min |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %.0f | %.0f | %.0f | %.0f |\n", r.strategy.title, r.pool, r.late,
			r.deadlocks, r.held, r.worked, r.waitP50.Minutes(), r.waitP99.Minutes())
	}
	return b.String()
}

// shown are the results that the page has between its marks, as far as it shows them, if they were made at that scale.
func shown(page string, scale float64) []result {
	text, _ := markdown.Marked(page, command)
	if !strings.Contains(text, stoodFor(scale)) {
		return nil
	}
	var all []result
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		at := slices.IndexFunc(strategies, func(s strategy) bool { return s.title == strings.TrimSpace(cells[0]) })
		var n [7]float64
		if at < 0 || len(cells) != len(n)+1 {
			continue
		}
		for i := range n {
			n[i], _ = strconv.ParseFloat(strings.TrimSpace(cells[i+1]), 64) // The table is our own.
		}
		of := func(amount float64, unit time.Duration) time.Duration { return time.Duration(amount * float64(unit)) }
		all = append(all, result{
			strategy: strategies[at], pool: int(n[0]), late: int(n[1]), deadlocks: int(n[2]),
			held: n[3], worked: n[4], waitP50: of(n[5], time.Minute), waitP99: of(n[6], time.Minute),
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
func conditions(scale float64, cost time.Duration) string {
	return fmt.Sprintf("%s With room free, creating, placing and starting a merge's four pods took %.1f simulated "+
		"minutes (median).\n", stoodFor(scale), cost.Minutes())
}

// stoodFor says how fast time went.
func stoodFor(scale float64) string {
	return fmt.Sprintf("One second stood for %.1f simulated minutes.", scale/60)
}

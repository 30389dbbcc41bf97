package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Markers of the page between which the tables stand.
const (
	beginMark = "<!-- begin: make bench-merge -->"
	endMark   = "<!-- end: make bench-merge -->"
)

// replaceMarked returns the page with other text between the markers.
func replaceMarked(page, text string) (string, error) {
	before, rest, begun := strings.Cut(page, beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !begun || !ended {
		return "", fmt.Errorf("the page has no %s and %s", beginMark, endMark)
	}
	return before + beginMark + "\n\n" + text + "\n" + endMark + after, nil
}

// table writes the results, which are in order of strategy and pool, as Markdown: the least pool of each strategy, then all.
func table(e experiment, results []result) string {
	var b strings.Builder
	b.WriteString("| merges | fewest machines that keep every model fresh | of the bound |\n|---|---|---|\n")
	for _, s := range byStrategy(results) {
		machines, share := "none that was tried", ""
		if pool := leastPool(s); pool > 0 {
			machines, share = strconv.Itoa(pool), fmt.Sprintf("%.2f", float64(pool)/e.bound())
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s[0].strategy.title, machines, share)
	}
	b.WriteString("\n| merges | machines | models late | oldest full model, h | deadlocks | merged |" +
		" machine-hours held | of these worked | wait p50, min | wait p99, min |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %d | %d | %.1f | %d | %d | %.0f | %.0f | %.0f | %.0f |\n", r.strategy.title, r.pool, r.late,
			r.oldest.Hours(), r.deadlocks, r.merged, r.held, r.worked, r.waitP50.Minutes(), r.waitP99.Minutes())
	}
	return b.String()
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
	return fmt.Sprintf("One second stood for %.1f simulated minutes. A merge for which there was room had its machines after "+
		"%.1f simulated minutes (median), which is what this machine took to create, place and start four pods.\n",
		scale/60, cost.Minutes())
}

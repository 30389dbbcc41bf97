package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// tables writes the results as Markdown.
func tables(commit string, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %d seeds each, at commit %s. Devices are those of both trainings together, on average.\n\n",
		len(results), len(seeds), commit)
	b.WriteString("| outage | a change each |")
	for _, s := range subjects {
		fmt.Fprintf(&b, " %s |", s.name)
	}
	b.WriteString(" pays ÷ greedy | pays ÷ better of fixed and greedy |\n|---|---|")
	b.WriteString(strings.Repeat("---|", len(subjects)+2) + "\n")
	for _, outage := range outages {
		for _, every := range changeEvery {
			fmt.Fprintf(&b, "| %s | %s |", sayTime(outage), sayTime(every))
			for i := range subjects {
				of := pick(results, outage, every, i)
				fmt.Fprintf(&b, " %.1f (%.1f) |", mean(of, goodDevices), mean(of, changesPerHour))
			}
			pays := pick(results, outage, every, onlyIfPays)
			fmt.Fprintf(&b, " %s | %s |\n", ratio(pays, pick(results, outage, every, greedy)), ratio(pays, better(
				pick(results, outage, every, fixed), pick(results, outage, every, greedy))))
		}
	}
	b.WriteString("\n*x (y)*: x devices trained on average, and each training restarted y times an hour. " +
		"Ratios have 95 % intervals.\n")
	return b.String()
}

func sayTime(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// pick lists the runs of a subject under one condition, in the order of seeds.
func pick(results []result, outage, every time.Duration, subject int) []result {
	var some []result
	for _, r := range results {
		if r.outage == outage && r.every == every && r.subject == subject {
			some = append(some, r)
		}
	}
	return some
}

// better has the results of the subject that was better on average.
func better(a, b []result) []result {
	if mean(a, goodDevices) > mean(b, goodDevices) {
		return a
	}
	return b
}

// goodDevices is how many devices trained on average.
func goodDevices(r result) float64 { return r.Good / horizon(r.every).Seconds() }

// changesPerHour is how often a training restarted in an hour.
func changesPerHour(r result) float64 {
	return float64(r.Changes) / float64(alike.trainings) / horizon(r.every).Hours()
}

func mean(of []result, what func(result) float64) float64 {
	sum := 0.0
	for _, r := range of {
		sum += what(r)
	}
	return sum / float64(len(of))
}

// ratio compares two subjects seed by seed: the geometric mean of their ratios, and its interval.
func ratio(a, b []result) string {
	var logs []float64
	for i := range a {
		logs = append(logs, math.Log(goodDevices(a[i])/goodDevices(b[i])))
	}
	middle, half := benchmark.MeanInterval(logs)
	return fmt.Sprintf("%.3f (%.3f to %.3f)", math.Exp(middle), math.Exp(middle-half), math.Exp(middle+half))
}

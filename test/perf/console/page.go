package main

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

const (
	// command writes the results.
	command = "make bench-console"
	// allowed is how much longer reconciles may take with readers than without: the aim.
	allowed = 1.05
)

// ratio is how many times a figure is with readers what it is without: the geometric mean over rounds, and its 95 % interval.
func ratio(rounds []round, of func(figures) float64) (middle, low, high float64) {
	var logs []float64
	for _, r := range rounds {
		logs = append(logs, math.Log(of(r.with.figures)/of(r.without.figures)))
	}
	mean, half := benchmark.MeanInterval(logs)
	return math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)
}

// judged are the figures that the aim is about.
var judged = []struct {
	name string
	of   func(figures) float64
}{
	{"half of the reconciles", figures.half},
	{"nine of ten", figures.most},
}

// verdict says what the rounds show about the aim.
func verdict(rounds []round) string {
	if len(rounds) < 2 {
		return "One round shows nothing."
	}
	var said []string
	for _, f := range judged {
		_, low, high := ratio(rounds, f.of)
		what := "the aim is neither shown nor refuted, because the interval has 1.05 in it"
		switch {
		case high <= allowed:
			what = "the aim is met"
		case low > allowed:
			what = "**the aim is missed**"
		}
		said = append(said, f.name+": "+what)
	}
	return "For " + strings.Join(said, "; for ") + "."
}

// judge returns an error if readers were refused, or if the aim is missed beyond doubt.
func judge(rounds []round) error {
	for _, r := range rounds {
		if n := len(r.with.Failed); n > 0 {
			return fmt.Errorf("%d pages could not be read, the first: %s", n, r.with.Failed[0])
		}
	}
	for _, f := range judged {
		if _, low, _ := ratio(rounds, f.of); len(rounds) > 1 && low > allowed {
			return fmt.Errorf("readers slow %s down by more than 5 %%", f.name)
		}
	}
	return nil
}

// report is what the run says on the page. Values of rounds stand beside each other.
func report(o options, rounds []round) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rounds of %s without and %s with %d readers, from seed %d; at commit %s; %d processors, %s/%s.\n\n",
		len(rounds), o.minute, o.minute, o.readers, o.seed, o.commit, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	b.WriteString("| of the operator | without | with | with ÷ without |\n|---|---|---|---|\n")
	for _, row := range []struct {
		title  string
		places int
		of     func(figures) float64
	}{
		{"reconciles of trainings", 0, func(f figures) float64 { return f.reconciles }},
		{"**half of the reconciles take up to, ms**", 2, figures.half},
		{"**nine of ten take up to, ms**", 2, figures.most},
		{"a reconcile on average, ms", 2, figures.reconcile},
		{"a change waits for its reconcile, ms", 2, figures.wait},
		{"processor time, s", 1, func(f figures) float64 { return f.cpu }},
	} {
		of := func(part func(round) minuteOf) string {
			return values(rounds, func(r round) string { return fmt.Sprintf("%.*f", row.places, row.of(part(r).figures)) })
		}
		middle, low, high := ratio(rounds, row.of)
		fmt.Fprintf(&b, "| %s | %s | %s | %.3f (%.3f to %.3f) |\n", row.title, of(func(r round) minuteOf { return r.without }),
			of(func(r round) minuteOf { return r.with }), middle, low, high)
	}
	b.WriteString("\n| of readers | |\n|---|---|\n")
	for _, row := range []struct {
		title string
		of    func(seen) string
	}{
		{"pages opened", func(s seen) string { return strconv.Itoa(len(s.Opened)) }},
		{"half of them within, ms", func(s seen) string { return within(s.Opened, 0.5) }},
		{"99 of 100 within, ms", func(s seen) string { return within(s.Opened, 0.99) }},
		{"changes of pages that were followed", func(s seen) string { return strconv.Itoa(s.Events) }},
		{"failures", func(s seen) string { return strconv.Itoa(len(s.Failed)) }},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row.title, values(rounds, func(r round) string { return row.of(r.with.seen) }))
	}
	return b.String() + "\nRatios are geometric means over rounds, with 95 % intervals. " + verdict(rounds) + "\n"
}

func values(rounds []round, of func(round) string) string {
	var said []string
	for _, r := range rounds {
		said = append(said, of(r))
	}
	return strings.Join(said, ", ")
}

// within is how long that part of times in ascending order took at most, in milliseconds.
func within(took []time.Duration, part float64) string {
	if len(took) == 0 {
		return "none"
	}
	return fmt.Sprintf("%.0f", took[int(math.Ceil(part*float64(len(took))))-1].Seconds()*1000)
}

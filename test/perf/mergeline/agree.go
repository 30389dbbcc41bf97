package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// agreement is what compares this simulation with make bench-merge, which runs the operator on a real API server and Volcano.
const agreement = "make bench-merge-agreement"

// experiment is that of make bench-merge: its models, the durations of its merges, its span, and since when it counts.
const (
	experimentWarmUp, experimentHorizon = 10 * time.Hour, 30 * time.Hour
	shortestMerge, longestMerge         = 15 * time.Minute, 35 * time.Minute
	experimentInterval                  = 10 * time.Hour
)

// experiment is the same workload as that of make bench-merge, merge by merge. places is what a merge costs there to be created,
// placed and started, which takes real time, less what its pods take here to run.
func experiment(places time.Duration) workload {
	w := workload{lasts: experimentHorizon, places: max(places-starting, placing), runs: func(model, number int) time.Duration {
		c := rand.New(rand.NewPCG(1, uint64(model)<<32|uint64(number)<<8))
		return (shortestMerge + time.Duration(c.Int64N(int64(longestMerge-shortestMerge)))).Round(time.Second)
	}}
	for range 60 {
		w.models = append(w.models, model{
			machines: 4, interval: experimentInterval, typical: (shortestMerge + longestMerge) / 2, tier: "small-traffic",
			firstAge: experimentInterval - 30*time.Minute,
		})
	}
	return w
}

// figures are what both say of a pool, counted alike.
type figures struct {
	machines, late, merged int
	oldest                 float64 // hours
	wait50, wait99         float64 // minutes from due until all pods run
}

// count counts the figures of a simulation of the experiment as make bench-merge does.
func (r *record) count(w workload, machines int) figures {
	f := figures{machines: machines}
	from, until := morning.Add(experimentWarmUp), morning.Add(experimentHorizon)
	var waits []float64
	last := make([]time.Time, len(w.models))
	oldest := make([]time.Duration, len(w.models))
	for i := range last {
		last[i] = morning.Add(-w.models[i].firstAge)
	}
	age := func(model int, at time.Time) {
		if !at.Before(from) {
			oldest[model] = max(oldest[model], at.Sub(last[model]))
		}
	}
	ended := slices.SortedFunc(slices.Values(r.all), func(a, b run) int { return a.ends.Compare(b.ends) })
	for _, m := range ended {
		if began := m.placed.Add(starting); began.After(from) {
			waits = append(waits, began.Sub(m.due).Minutes())
		}
		if m.ends.After(until) {
			continue
		}
		age(m.model, m.ends)
		last[m.model] = m.ends
		if m.ends.After(from) {
			f.merged++
		}
	}
	for i := range w.models {
		age(i, until)
		f.oldest = max(f.oldest, oldest[i].Hours())
		if oldest[i].Seconds() > lateFactor*w.models[i].interval.Seconds() {
			f.late++
		}
	}
	f.wait50, f.wait99 = quantile(waits, 0.5), quantile(waits, 0.99)
	return f
}

// measured is what make bench-merge printed.
type measured struct {
	commit string
	cost   time.Duration // of a merge for which there is room
	pools  []figures
}

var (
	saidCommit = regexp.MustCompile(`at commit ([0-9a-f]+)\.`)
	saidCost   = regexp.MustCompile(`took ([0-9.]+) simulated minutes`)
	saidPool   = regexp.MustCompile(`(?m)^[0-9.]+,tideline,(\d+),(\d+),([0-9.]+),\d+,(\d+),\d+,\d+,(\d+),(\d+)`)
)

func readMeasured(printed string) (measured, error) {
	number := func(s string) float64 {
		n, _ := strconv.ParseFloat(s, 64) // The expressions find numbers alone.
		return n
	}
	commit, cost, pools := saidCommit.FindStringSubmatch(printed), saidCost.FindStringSubmatch(printed),
		saidPool.FindAllStringSubmatch(printed, -1)
	if commit == nil || cost == nil || pools == nil {
		return measured{}, fmt.Errorf("this is not what bench-merge prints: %.200q", printed)
	}
	m := measured{commit: commit[1], cost: time.Duration(number(cost[1]) * float64(time.Minute)).Round(time.Second)}
	for _, p := range pools {
		m.pools = append(m.pools, figures{
			machines: int(number(p[1])), late: int(number(p[2])), oldest: number(p[3]), merged: int(number(p[4])),
			wait50: number(p[5]), wait99: number(p[6]),
		})
	}
	return m, nil
}

// simulated are the same pools, simulated.
func (m measured) simulated() ([]figures, error) {
	var all []figures
	for _, p := range m.pools {
		w := experiment(m.cost)
		r, err := policy{learns: true}.play(w, int32(p.machines))
		if err != nil {
			return nil, err
		}
		all = append(all, r.count(w, p.machines))
	}
	return all, nil
}

// agree simulates what was measured, and writes both into the page.
func agree(page, file string) error {
	printed, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	m, err := readMeasured(string(printed))
	if err != nil {
		return err
	}
	simulated, err := m.simulated()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Measured at commit %s, where a merge with room free cost %.1f simulated minutes.\n\n"+
		"| machines | | models late | oldest, h | merged | wait p50, min | wait p99, min |\n|---|---|---|---|---|---|---|\n",
		m.commit, m.cost.Minutes())
	for i, p := range m.pools {
		for _, row := range []struct {
			name string
			figures
		}{{"on a cluster", p}, {"simulated", simulated[i]}} {
			fmt.Fprintf(&b, "| %d | %s | %d | %.1f | %d | %.0f | %.0f |\n", row.machines, row.name, row.late, row.oldest, row.merged,
				row.wait50, row.wait99)
		}
	}
	return benchmark.WriteResults(page, agreement, b.String(), nil)
}

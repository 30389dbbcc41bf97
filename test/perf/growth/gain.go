package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// What follows was fixed before anything was run.
const (
	// noise is the standard deviation of what a line says of thirty seconds, as a share of it.
	noise = 0.05
	// allSteps is more than any training takes here.
	allSteps = 100_000_000
	// gainEvery and gainOutage are the one condition under which ways to divide free room are compared.
	gainEvery, gainOutage = 8 * time.Minute, time.Minute
)

// unlike has trainings that scale differently: two thirds of what their minima leave are free for surplus.
var unlike = workload{trainings: 4, minimum: 4, maximum: 32, rigidDevices: 16, speeds: drawSpeeds}

// drawSpeeds draws how trainings scale, each of one of two kinds with equal chance. Either every worker has its own part of the
// work (Amdahl's law), of a share that is drawn between 0.2 and 30 % of what a worker does, on a logarithmic scale; or more
// workers are of no use from a number on that is drawn between 4 and 64 in the same way, as where data come no faster.
func drawSpeeds(seed uint64) []speed {
	random := rand.New(rand.NewPCG(seed, 2))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, random.Float64()) }
	all := make([]speed, 4)
	for i := range all {
		own, most, amdahl := between(0.002, 0.3), between(4, 64), random.Float64() < 0.5
		raw := func(n float64) float64 {
			if amdahl {
				return n / (1 + own*n)
			}
			return math.Pow(math.Pow(n, -4)+math.Pow(most, -4), -0.25)
		}
		core := raw(float64(4)) / 4
		all[i] = func(workers int) float64 { return raw(float64(workers)) / core }
	}
	return all
}

// dividers are ways to divide free room.
var dividers = []subject{
	{name: "equal split", set: pays, equal: true},
	{name: "who came first", set: pays},
	{name: "who gains most", set: func(job *v1beta1.ElasticTrainingJob) {
		pays(job)
		job.Spec.Progress = &v1beta1.JobProgress{}
	}},
}

func pays(job *v1beta1.ElasticTrainingJob) {
	job.Spec.Elasticity.Growth = v1beta1.Growth{
		Mode: v1beta1.GrowthOnlyIfPays, CooldownSeconds: ptr.To(v1beta1.DefaultCooldownSeconds), OutageSeconds: ptr.To[int32](60),
	}
}

// measureGain runs all ways to divide room with all seeds.
func measureGain(tell func(done, all int)) ([]result, error) {
	var all []result
	for i := range dividers {
		for _, seed := range seeds {
			all = append(all, result{outage: gainOutage, every: gainEvery, subject: i, seed: seed})
		}
	}
	return all, benchmark.RunAll(len(all), func(i int) error {
		r := &all[i]
		var err error
		r.outcome, err = run(unlike, dividers[r.subject], r.seed, r.every, r.outage)
		return err
	}, tell)
}

// gainTable writes their results as Markdown.
func gainTable(commit string, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %d seeds each, at commit %s.\n\n", len(results), len(seeds), commit)
	b.WriteString("| free room goes to | speed of all | devices held | restarts an hour | speed ÷ equal split |\n")
	b.WriteString("|---|---|---|---|---|\n")
	for i, s := range dividers {
		of := pick(results, gainOutage, gainEvery, i)
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %s |\n", s.name, mean(of, goodDevices),
			mean(of, func(r result) float64 { return r.Held / horizon(r.every).Seconds() }),
			mean(of, func(r result) float64 {
				return float64(r.Changes) / float64(unlike.trainings) / horizon(r.every).Hours()
			}),
			ratio(of, pick(results, gainOutage, gainEvery, 0)))
	}
	b.WriteString("\nThe speed is in workers of a core, on average over time. Ratios have 95 % intervals.\n")
	return b.String()
}

package main

import (
	"fmt"
	"strings"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// Where freshness begins: pools, as multiples of the bound, of the mixed models.
var (
	fewestPools    = []float64{1.15, 1.3, 1.6, 2, 2.5, 3}
	fewestSeeds    = seeds[:3]
	fewestSubjects = []int{volcano, knowing, learned}
)

// seekFewest runs some subjects in pools of rising size, and writes in which of them no model is late.
func seekFewest(page, commit string) error {
	var all []result
	for c := range fewestPools {
		for _, s := range fewestSubjects {
			for _, seed := range fewestSeeds {
				all = append(all, result{condition: c, subject: s, seed: seed})
			}
		}
	}
	err := benchmark.RunAll(len(all), func(i int) error {
		r := &all[i]
		w := drawWorkload(r.seed)
		rec, err := subjects[r.subject].play(w, w.pool(fewestPools[r.condition]))
		if err != nil {
			return fmt.Errorf("%s, seed %d: %w", subjects[r.subject].name, r.seed, err)
		}
		r.summary = rec.summarize()
		return nil
	}, tell)
	if err != nil {
		return err
	}
	return benchmark.WriteResults(page, "make bench-merge-fewest", fewestTable(commit, all), nil)
}

// fewestTable has, for each subject and pool, how many models are late with the seed that has the most, and the mean of all
// seeds.
func fewestTable(commit string, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs of %.0f hours, %d seeds each, at commit %s. Models of 60 that are late: the mean of the seeds, and "+
		"the most.\n\n| who starts merges, pool ÷ bound: |", len(results), horizon.Hours(), len(fewestSeeds), commit)
	for _, times := range fewestPools {
		fmt.Fprintf(&b, " %g |", times)
	}
	b.WriteString(" smallest without a late one |\n|---|" + strings.Repeat("---|", len(fewestPools)+1) + "\n")
	for _, s := range fewestSubjects {
		fmt.Fprintf(&b, "| %s |", subjects[s].name)
		for c := range fewestPools {
			late := values(choose(results, c, s), func(s summary) float64 { return s.late })
			mean, _ := benchmark.MeanInterval(late)
			fmt.Fprintf(&b, " %.1f, %.0f |", mean, most(late))
		}
		b.WriteString(" " + smallest(results, s) + " |\n")
	}
	return b.String()
}

// smallest is the smallest pool from which on no model is late with any seed.
func smallest(results []result, subject int) string {
	found := "more than tried"
	for c := len(fewestPools) - 1; c >= 0; c-- {
		if most(values(choose(results, c, subject), func(s summary) float64 { return s.late })) > 0 {
			break
		}
		found = fmt.Sprintf("%g", fewestPools[c])
	}
	return found
}

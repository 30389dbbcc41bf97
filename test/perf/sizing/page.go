package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// command is what writes the tables of the page, between its marks.
const command = "make bench-sizing"

// judged is a workload and what became of it.
type judged struct {
	name   string
	shapes []string
	seeds  []seedResult
}

// table writes what became of the workloads, as Markdown.
func table(tasks int, commit string, all []judged) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured at commit %s: %d seeds with %d tasks each. Slack is in percent; throttled, killed and violated are "+
		"percent of runs.\n", commit, len(all[0].seeds), tasks)
	b.WriteString("\n### Who violates fewer runs\n\nAt equal mean slack, by what the 95 % interval shows.\n\n")
	b.WriteString("| workload | rival | Tideline is ahead | not told apart | Tideline is behind |\n|---|---|---|---|---|\n")
	for _, w := range all {
		b.WriteString(claims(w))
	}
	for _, w := range all {
		fmt.Fprintf(&b, "\n### %s, as recommended\n\n%s\n### %s, at equal mean slack\n\n%s\n### %s, by shape\n\n%s\n### %s, tasks "+
			"that ask for too little memory\n\n%s", w.name, plainTable(w), w.name, evenTable(w), w.name, shapeTable(w), w.name,
			killTable(w))
	}
	return b.String()
}

// claims says in which tiers Tideline is ahead of each rival, and in which not.
func claims(w judged) string {
	var b strings.Builder
	for who := vpaTarget; who < contestants; who++ {
		tiers := map[string][]string{}
		for _, tier := range tierNames() {
			said := verdict(more(w.seeds, who, tier))
			tiers[said] = append(tiers[said], tier)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", w.name, names[who], strings.Join(tiers["ahead"], ", "),
			strings.Join(tiers["not told apart"], ", "), strings.Join(tiers["behind"], ", "))
	}
	return b.String()
}

// over is the mean over seeds.
func over(seeds []seedResult, of func(seedResult) float64) float64 {
	var values []float64
	for i := range seeds {
		values = append(values, of(seeds[i]))
	}
	return average(values)
}

func plainTable(w judged) string {
	var b strings.Builder
	b.WriteString("| tier | requests | CPU slack | throttled > 5 % | memory slack | killed | violated |\n" +
		strings.Repeat("|---", 7) + "|\n")
	for _, tier := range tierNames() {
		for who := asAsked; who < contestants; who++ {
			name, of := "as asked", func(s seedResult) *score { return s.asked.tiers[tier] }
			if who != asAsked {
				name, of = names[who], func(s seedResult) *score { return s.plain[who].tiers[tier] }
			}
			mean := func(f func(*score) float64) float64 {
				return over(w.seeds, func(s seedResult) float64 { return f(of(s)) })
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %.1f | %s | %.1f | %.1f |\n", tier, name,
				points(mean(func(s *score) float64 { return s.mean().cpu })),
				mean(func(s *score) float64 { return s.share(s.often) }),
				points(mean(func(s *score) float64 { return s.mean().memory })),
				mean(func(s *score) float64 { return s.share(s.killed) }),
				mean(func(s *score) float64 { return s.share(s.violated) }))
		}
	}
	return b.String()
}

func points(x float64) string { return strconv.Itoa(int(math.Round(x))) }

func evenTable(w judged) string {
	var b strings.Builder
	b.WriteString("| tier | requests | throttled > 5 % | killed | violated | more than Tideline, points | 95 % interval " +
		"| Tideline is |\n" + strings.Repeat("|---", 8) + "|\n")
	for _, tier := range tierNames() {
		for who := range contestants {
			mean := func(f func(*score) int) float64 {
				return over(w.seeds, func(s seedResult) float64 { sc := s.even[who].tiers[tier]; return sc.share(f(sc)) })
			}
			fmt.Fprintf(&b, "| %s | %s | %.1f | %.1f | %.1f |", tier, names[who], mean(func(s *score) int { return s.often }),
				mean(func(s *score) int { return s.killed }), mean(func(s *score) int { return s.violated }))
			if who == tideline {
				b.WriteString(" | | |\n")
				continue
			}
			i := more(w.seeds, who, tier)
			fmt.Fprintf(&b, " %+.2f | %+.2f to %+.2f | %s |\n", i.mean, i.least, i.most, verdict(i))
		}
	}
	return b.String()
}

// verdict says what an interval of a rival's violated runs above Tideline's shows.
func verdict(i interval) string {
	switch {
	case !i.excludesZero():
		return "not told apart"
	case i.mean > 0:
		return "ahead"
	}
	return "behind"
}

func shapeTable(w judged) string {
	var b strings.Builder
	b.WriteString("Violated runs of all tiers, at equal mean slack.\n\n| tasks |")
	for who := range contestants {
		b.WriteString(" " + names[who] + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", int(contestants)) + "\n")
	for _, shape := range w.shapes {
		b.WriteString("| " + shape + " |")
		for who := range contestants {
			runs, violated := 0, 0
			for i := range w.seeds {
				if s := w.seeds[i].even[who].shapes[shape]; s != nil {
					runs, violated = runs+s.runs, violated+s.violated
				}
			}
			fmt.Fprintf(&b, " %.1f |", 100*float64(violated)/float64(max(runs, 1)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func killTable(w judged) string {
	var b strings.Builder
	b.WriteString("Kills in six weeks, as recommended.\n\n| requests | tasks | kills | most of one task |\n|---|---|---|---|\n")
	for who := asAsked; who < contestants; who++ {
		name, tasks, kills, most := "as asked", 0, 0, 0
		for i := range w.seeds {
			r := w.seeds[i].asked
			if who != asAsked {
				name, r = names[who], w.seeds[i].plain[who]
			}
			tasks, kills, most = tasks+r.tooLittle, kills+r.kills, max(most, r.most)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", name, tasks, kills, most)
	}
	return b.String()
}

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// command is what writes the tables of the page, between its marks.
const command = "make bench-sizing"

// table writes what became of the tasks of some seeds, as Markdown: all of the first, and the violated runs of each.
func table(all []played) string {
	var b strings.Builder
	seed, outcomes := all[0].seed, all[0].outcomes
	fmt.Fprintf(&b, "Seed %[2]d draws %[1]d tasks with %[3]d runs in the second week. Slack is in percent; throttled, killed and "+
		"violated\nare percent of runs.\n", len(outcomes), seed, judge(outcomes, policy{}).runs)
	b.WriteString("\n### As recommended\n\n" + requests(outcomes) + "\n### At equal mean slack\n\n" + equal(outcomes) +
		"\n### Which tasks\n\n" + byShape(outcomes) + "\n### Other seeds\n\n" + bySeed(all))
	return b.String()
}

// bySeed is the table of violated runs: in each cell one number for each seed.
func bySeed(all []played) string {
	var b strings.Builder
	seeds := make([]string, len(all))
	for i, p := range all {
		seeds[i] = strconv.FormatUint(p.seed, 10)
	}
	fmt.Fprintf(&b, "Violated runs at equal mean slack, for seeds %s:\n\n| tier |", strings.Join(seeds, ", "))
	for who := range contestants {
		b.WriteString(" " + names[who] + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", int(contestants)) + "\n")
	for _, tier := range config.DefaultTiers() {
		var violated [contestants][]string
		for _, p := range all {
			if some := of(p.outcomes, tier.Name); len(some) > 0 {
				for who, n := range compare(some).violated {
					violated[who] = append(violated[who], strconv.Itoa(n))
				}
			}
		}
		if len(violated[tideline]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s |", tier.Name)
		for who := range contestants {
			fmt.Fprintf(&b, " %s |", strings.Join(violated[who], ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// requests is the table of what is requested in each tier, beside what is needed.
func requests(outcomes []outcome) string {
	var b strings.Builder
	b.WriteString("| tier | requests | CPU slack | p50 − buffer | throttled > 5 % |" +
		" memory slack | p50 − buffer | killed |\n" + strings.Repeat("|---", 8) + "|\n")
	policies := []policy{{asked: true}}
	for who := range contestants {
		policies = append(policies, policy{who: who})
	}
	for _, tier := range config.DefaultTiers() {
		some, rule := of(outcomes, tier.Name), tier.Sizing
		if len(some) == 0 {
			continue
		}
		for _, p := range policies {
			s := judge(some, p)
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", tier.Name, p.title(), points(average(s.cpu)),
				median(s.cutCPU, rule.CPUBufferPercent), s.share(s.often), points(average(s.memory)),
				median(s.cutMemory, rule.MemoryBufferPercent), s.share(s.killed))
		}
	}
	return b.String()
}

// median is the cell of the points by which the median slack of what is cut is over a buffer; empty if nothing is cut.
func median(cut []float64, bufferPercent int32) string {
	if len(cut) == 0 {
		return ""
	}
	return points(over(cut, bufferPercent))
}

// points are a number without a fraction, and without the sign of a zero.
func points(x float64) string { return strconv.Itoa(int(math.Round(x))) }

// share is n in percent of the runs.
func (s *score) share(n int) string { return fmt.Sprintf("%.1f", 100*float64(n)/float64(s.runs)) }

func (p policy) title() string {
	if p.asked {
		return "as asked"
	}
	return names[p.who]
}

// equal is the table of violations in each tier at equal slack. Tideline keeps to the cap by itself.
func equal(outcomes []outcome) string {
	var b strings.Builder
	b.WriteString("| tier | requests | throttled > 5 % | killed | violated |" +
		" uncapped: throttled > 5 % | killed | violated |\n" + strings.Repeat("|---", 8) + "|\n")
	for _, tier := range config.DefaultTiers() {
		some := of(outcomes, tier.Name)
		if len(some) == 0 {
			continue
		}
		capped, uncapped := rivals(some, false), rivals(some, true)
		cells := func(p policy) string {
			s := judge(some, p)
			return s.share(s.often) + " | " + s.share(s.killed) + " | " + s.share(s.violated)
		}
		for who := range contestants {
			without := "| |"
			if who != tideline {
				without = cells(uncapped[who])
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", tier.Name, names[who], cells(capped[who]), without)
		}
	}
	return b.String()
}

// byShape is the table of runs that were violated at equal slack, by the shape of their tasks.
func byShape(outcomes []outcome) string {
	var b strings.Builder
	b.WriteString("Runs of all tiers at equal mean slack: throttled in more than 5 % of samples + killed.\n\n" +
		"| tasks | runs |")
	for who := range contestants {
		b.WriteString(" " + names[who] + " |")
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", int(contestants)) + "\n")
	policies := map[string][contestants]policy{}
	for _, tier := range config.DefaultTiers() {
		policies[tier.Name] = rivals(of(outcomes, tier.Name), false)
	}
	for _, s := range shapes {
		var sums [contestants]score
		for _, o := range outcomes {
			if o.shape != s.shape {
				continue
			}
			for who := range contestants {
				one := judge([]outcome{o}, policies[o.tier.Name][who])
				sums[who].runs += one.runs
				sums[who].often += one.often
				sums[who].killed += one.killed
			}
		}
		fmt.Fprintf(&b, "| %s | %d |", s.name, sums[tideline].runs)
		for who := range contestants {
			fmt.Fprintf(&b, " %d + %d |", sums[who].often, sums[who].killed)
		}
		b.WriteString("\n")
	}
	return b.String()
}

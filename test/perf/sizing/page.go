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

// table writes what became of the tasks of some seeds, as Markdown: all of the first, and what the aims say of each.
func table(all []played) string {
	var b strings.Builder
	seed, outcomes := all[0].seed, all[0].outcomes
	fmt.Fprintf(&b, "Seed %[2]d draws %[1]d tasks with %[3]d runs in the second week. "+
		"Throttled, killed and violated are percent of runs.\n", len(outcomes), seed, judge(outcomes, policy{}).runs)
	for _, tier := range config.DefaultTiers() {
		some := of(outcomes, tier.Name)
		if len(some) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### Tier %s\n\n%s\n%s", tier.Name, requests(some, tier.Sizing), equal(some))
	}
	b.WriteString("\n### Which tasks\n\n" + byShape(outcomes) + "\n### Other seeds\n\n" + bySeed(all))
	return b.String()
}

// bySeed is the table of what is aimed at, for each seed.
func bySeed(all []played) string {
	var b strings.Builder
	b.WriteString("Points by which Tideline's median slack exceeds the tier's buffer, for all tasks and for cut ones, and " +
		"violated runs at equal\nmean slack.\n\n" +
		"| tier | seed | CPU | cut | memory | cut |")
	for who := range contestants {
		b.WriteString(" " + names[who] + " |")
	}
	b.WriteString("\n|---|---|---|---|---|---|" + strings.Repeat("---|", int(contestants)) + "\n")
	for _, tier := range config.DefaultTiers() {
		for _, p := range all {
			if some := of(p.outcomes, tier.Name); len(some) > 0 {
				v := compare(some)
				fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s |", tier.Name, p.seed, points(v.over.cpu), points(v.cut.cpu),
					points(v.over.memory), points(v.cut.memory))
				for _, violated := range v.violated {
					fmt.Fprintf(&b, " %d |", violated)
				}
				b.WriteString("\n")
			}
		}
	}
	return b.String()
}

// requests are the tables of the CPU and the memory that are requested in a tier, beside what is needed.
func requests(outcomes []outcome, rule config.Sizing) string {
	const slack = "mean | p5 | p50 | p95 | p99 | p50 − buffer | of cut tasks |"
	cpu := "| CPU requests | " + slack + " throttled > 1 % | > 5 % |\n" + strings.Repeat("|---", 10) + "|\n"
	memory := "\n| memory requests | " + slack + " killed |\n" + strings.Repeat("|---", 9) + "|\n"
	rows := []policy{{asked: true}}
	for who := range contestants {
		rows = append(rows, policy{who: who})
	}
	for who := vpaTarget; who < contestants; who++ {
		rows = append(rows, policy{who: who, uncapped: true})
	}
	for _, p := range rows {
		s := judge(outcomes, p)
		cpu += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", p.title(), tails(s.cpu),
			medians(s.cpu, s.cutCPU, rule.CPUBufferPercent), s.share(s.seldom), s.share(s.often))
		memory += fmt.Sprintf("| %s | %s | %s | %s |\n", p.title(), tails(s.memory),
			medians(s.memory, s.cutMemory, rule.MemoryBufferPercent), s.share(s.killed))
	}
	return fmt.Sprintf("Slack in percent. The tier's buffer is %d %% of CPU and %d %% of memory.\n\n",
		rule.CPUBufferPercent-100, rule.MemoryBufferPercent-100) + cpu + memory
}

// tails are the cells of slacks: their mean and both tails.
func tails(sorted []float64) string {
	cells := []string{points(average(sorted))}
	for _, share := range []float64{0.05, 0.5, 0.95, 0.99} {
		cells = append(cells, points(interpolated(sorted, share)))
	}
	return strings.Join(cells, " | ")
}

// medians are the cells of the points by which the median is over a buffer: of all, and of what is cut.
func medians(all, cut []float64, bufferPercent int32) string {
	cells := points(over(all, bufferPercent)) + " |"
	if len(cut) > 0 {
		cells += " " + points(over(cut, bufferPercent))
	}
	return cells
}

// points are a number without a fraction, and without the sign of a zero.
func points(x float64) string { return strconv.Itoa(int(math.Round(x))) }

// share is n in percent of the runs.
func (s *score) share(n int) string { return fmt.Sprintf("%.1f", 100*float64(n)/float64(s.runs)) }

func (p policy) title() string {
	switch {
	case p.asked:
		return "as asked"
	case p.uncapped:
		return names[p.who] + ", uncapped"
	}
	return names[p.who]
}

// equal is the table of violations in a tier at equal slack.
func equal(outcomes []outcome) string {
	var b strings.Builder
	b.WriteString("At equal mean slack:\n\n| requests | × CPU | × memory | throttled > 1 % | > 5 % | killed | violated |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, uncapped := range []bool{false, true} {
		for who, p := range rivals(outcomes, uncapped) {
			if contestant(who) == tideline && uncapped {
				continue // It is the same.
			}
			s := judge(outcomes, p)
			fmt.Fprintf(&b, "| %s | %.2f | %.2f | %s | %s | %s | %s |\n", p.title(), p.factor.cpu, p.factor.memory, s.share(s.seldom),
				s.share(s.often), s.share(s.killed), s.share(s.violated))
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

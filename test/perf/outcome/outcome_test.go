package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// aTrace has a job that was running when the week began, and one each minute of some sizes.
func aTrace() string {
	var b strings.Builder
	b.WriteString("timestamp,duration,num_gpus,gpu_time,cluster\n")
	b.WriteString("2017-10-08 00:00:00,172800.0,8,0,a\n2017-10-01 00:00:00,60.0,8,0,a\n")
	for i := range 10000 {
		at := weekBegins.Add(time.Duration(i) * time.Minute)
		fmt.Fprintf(&b, "%s,%d,%d,0,%c\n", at.Format(time.DateTime), 100+i%5000, 1<<(i%5), 'a'+rune(i%3))
	}
	return b.String()
}

func TestTheWorkloadOffersTheLoad(t *testing.T) {
	g := NewWithT(t)
	trace, err := readTrace(strings.NewReader(aTrace()))
	g.Expect(err).NotTo(HaveOccurred())
	for _, load := range loads {
		jobs := draw(trace, load, 3, 7)
		g.Expect(offered(jobs, 7)).To(BeNumerically("~", load, 0.03*load))
		g.Expect(draw(trace, load, 3, 7)).To(Equal(jobs), "a seed gives its jobs")
		g.Expect(draw(trace, load, 4, 7)).NotTo(Equal(jobs))
	}
	var carried []time.Duration
	for _, j := range draw(trace, 1.1, 1, 7) {
		if j.comes == 0 && j.asked == 8 {
			carried = append(carried, j.lasts)
		}
	}
	g.Expect(carried).To(ContainElement(24*time.Hour), "of a job that was running, a day of two was over")
}

func TestBadTraceIsRefused(t *testing.T) {
	for text, problem := range map[string]string{
		"": "names of columns", "timestamp,duration,cluster\n": "num_gpus",
		"timestamp,duration,num_gpus,cluster\n2017-10-09 00:00:00,60,many,a\n": "row 2",
	} {
		_, err := readTrace(strings.NewReader(text))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(problem)))
	}
}

func TestRangesAreHalfToDouble(t *testing.T) {
	g := NewWithT(t)
	for asked, want := range map[int32][2]int32{1: {1, 1}, 2: {1, 4}, 8: {4, 16}, 16: {8, 32}} {
		j := job{asked: asked}
		g.Expect([2]int32{j.least(), j.most()}).To(Equal(want))
	}
}

func TestAChangeOfSizeCostsAPauseAndTheStepsSinceTheCheckpoint(t *testing.T) {
	g := NewWithT(t)
	p := progress{asked: 4, left: time.Hour}
	p.resize(0, 4)
	ends, runs := p.ends()
	g.Expect(runs).To(BeTrue())
	g.Expect(ends).To(Equal(61*time.Minute), "the start makes no progress")
	p.resize(26*time.Minute, 8) // 25 minutes were trained, 20 of them are in a checkpoint.
	g.Expect(p.leftAt(26 * time.Minute)).To(Equal(40 * time.Minute))
	g.Expect(p.lost).To(Equal(4 * 5 * time.Minute))
	ends, _ = p.ends()
	g.Expect(ends).To(BeNumerically("~", 27*time.Minute+time.Duration(float64(40*time.Minute)/speed(8, 4)), time.Second))
	p.end(ends)
	g.Expect(p.lost).To(Equal(4*5*time.Minute + 8*time.Minute))
	p.resize(ends, 0)
	_, runs = p.ends()
	g.Expect(runs).To(BeFalse())
}

func TestWhatWasPlayedIsNotPlayedAgain(t *testing.T) {
	g := NewWithT(t)
	p := plan{results: filepath.Join(t.TempDir(), "results"), loads: []float64{0.9, 1}, days: 1, seeds: 2}
	g.Expect(p.missing()).To(HaveLen(2*2*len(entrants)), "a file that is not there has none")
	for _, r := range []result{
		{Subject: "as asked", Load: 0.9, Seed: 2, Days: 1}, {Subject: "as asked", Load: 0.9, Seed: 1, Days: 7},
	} {
		g.Expect(addResult(p.results, &r)).To(Succeed())
	}
	p.only = "as asked"
	missing, err := p.missing()
	g.Expect(err).NotTo(HaveOccurred())
	var of []string
	for _, r := range missing {
		of = append(of, fmt.Sprintf("%.1f %d", r.Load, r.Seed))
	}
	g.Expect(of).To(Equal([]string{"0.9 1", "1.0 1", "1.0 2"}), "seed by seed, but for what is there of as many days")
	g.Expect(os.WriteFile(p.results, []byte("{"), 0o600)).To(Succeed())
	_, err = p.missing()
	g.Expect(err).To(MatchError(ContainSubstring(p.results)))
}

func TestThePageHasMeansIntervalsAndRatios(t *testing.T) {
	g := NewWithT(t)
	of := func(subject string, seed uint64, goodput float64) result {
		return result{Subject: subject, Load: 0.9, Seed: seed, Days: 7, Commit: "abc", figures: figures{Goodput: goodput}}
	}
	page := tables([]result{of(ourName, 1, 0.6), of(ourName, 2, 0.8), of("as asked", 1, 0.3), of("as asked", 2, 0.5)})
	g.Expect(page).To(ContainSubstring("4 runs, at commit abc.\n"))
	// Student's t of one degree of freedom, times the deviation of 14.1 over the root of 2.
	g.Expect(page).To(ContainSubstring("| Tideline | 2 | 70.0 ± 127.1 |"))
	g.Expect(page).To(ContainSubstring("| 1.80 ± 2.54 |\n"), "2 and 1.6, seed by seed")
	one := tables([]result{of("as asked", 1, 0.3)})
	g.Expect(one).To(ContainSubstring("| as asked | 1 | 30.0 |"), "one seed has no interval")
}

func TestTheLongestWindowOfSeveralLoadsIsDrawn(t *testing.T) {
	g := NewWithT(t)
	of := func(subject string, load float64, days int, goodput float64) result {
		return result{Subject: subject, Load: load, Seed: 1, Days: days, figures: figures{Goodput: goodput}}
	}
	words, files := curves([]result{of(ourName, 0.5, 1, 0.5), of(ourName, 0.9, 7, 0.9)})
	g.Expect(words).To(BeEmpty(), "no window has two loads")
	g.Expect(files).To(BeEmpty())
	all := []result{of(ourName, 0.5, 1, 0.4), of(ourName, 1.1, 1, 0.8), of("as asked", 1.1, 1, 0.7), of(ourName, 0.9, 7, 0.9)}
	words, files = curves(all)
	g.Expect(words).To(ContainSubstring("the first day."))
	g.Expect(files["outcome.svg"]).To(ContainSubstring(`points="60.0,130.0 360.0,40.0"`), "from 40 to 80 %")
	g.Expect(files["outcome.svg"]).To(ContainSubstring(">as asked</text>"))
	words, _ = curves(append(all, of(ourName, 1.1, 7, 0.8)))
	g.Expect(words).To(ContainSubstring("the first 7 days."))
}

func TestSpeedIsThatOfTheSource(t *testing.T) {
	g := NewWithT(t)
	g.Expect(speed(512, 1) / 512).To(BeNumerically("~", 0.68, 0.005))
	g.Expect(speed(8, 8)).To(BeNumerically("==", 1))
}

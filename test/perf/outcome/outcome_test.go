package main

import (
	"fmt"
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

func TestSpeedIsThatOfTheSource(t *testing.T) {
	g := NewWithT(t)
	g.Expect(speed(512, 1) / 512).To(BeNumerically("~", 0.68, 0.005))
	g.Expect(speed(8, 8)).To(BeNumerically("==", 1))
}

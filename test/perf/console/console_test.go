package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// rounds are some whose reconciles took so many milliseconds, without and with readers.
func rounds(pairs ...[2]float64) (all []round) {
	of := func(ms float64) minuteOf {
		return minuteOf{figures: figures{reconciles: 1000, took: ms, changes: 500, waited: 1, cpu: 3}}
	}
	for _, p := range pairs {
		r := round{without: of(p[0]), with: of(p[1])}
		r.with.seen = seen{opened: []time.Duration{time.Millisecond, 2 * time.Millisecond, 30 * time.Millisecond}, events: 7}
		all = append(all, r)
	}
	return all
}

func TestWhatRoundsShow(t *testing.T) {
	for name, c := range map[string]struct {
		rounds []round
		says   string
		fails  bool
	}{
		"not slower":     {rounds([2]float64{10, 10.1}, [2]float64{12, 12}, [2]float64{11, 11.1}), "The aim is met", false},
		"slower":         {rounds([2]float64{10, 12}, [2]float64{12, 14.5}, [2]float64{11, 13.2}), "The aim is missed", true},
		"who knows":      {rounds([2]float64{10, 12}, [2]float64{12, 10}, [2]float64{11, 11.5}), "neither shown nor refuted", false},
		"only one round": {rounds([2]float64{10, 20}), "One round shows nothing", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(verdict(c.rounds)).To(ContainSubstring(c.says))
			g.Expect(judge(c.rounds) != nil).To(Equal(c.fails))
		})
	}
	refused := rounds([2]float64{10, 10}, [2]float64{10, 10})
	refused[1].with.failed = []error{errors.New("503")}
	NewWithT(t).Expect(judge(refused)).To(MatchError(ContainSubstring("1 pages could not be read, the first: 503")))
}

func TestTheTableHasEveryRound(t *testing.T) {
	g := NewWithT(t)
	o, err := parse([]string{"-commit=abc1234"})
	g.Expect(err).NotTo(HaveOccurred())
	text := report(o, rounds([2]float64{10, 10.5}, [2]float64{20, 21}))
	for _, line := range []string{
		"2 rounds of 1m0s without and 1m0s with 50 readers, from seed 1; at commit abc1234; ",
		"| **a reconcile, ms** | 10.00, 20.00 | 10.50, 21.00 | 1.050 (1.050 to 1.050) |",
		"| half of them within, ms | 2, 2 |", "| 99 of 100 within, ms | 30, 30 |", "| changes of pages that were followed | 7, 7 |",
	} {
		g.Expect(text).To(ContainSubstring(line))
	}
	_, err = parse([]string{"-rounds=17"})
	g.Expect(err).To(MatchError(ContainSubstring("-rounds is from 1 to 16")))
}

// Both minutes of a round have the same work, all of it has gone at their end, and rounds differ.
func TestWorkIsThatOfTheSeed(t *testing.T) {
	g := NewWithT(t)
	one := arrivals(1, time.Minute)
	g.Expect(arrivals(1, time.Minute)).To(Equal(one))
	g.Expect(arrivals(2, time.Minute)).NotTo(Equal(one))
	g.Expect(len(one)).To(BeNumerically("~", 104, 30))
	g.Expect(one[len(one)-1].at + lasts).To(BeNumerically("<=", time.Minute))
	g.Expect(arrivals(0, shortest)).NotTo(BeEmpty())
}

func TestFiguresAreThoseOfTrainings(t *testing.T) {
	g := NewWithT(t)
	const metrics = `# TYPE controller_runtime_reconcile_time_seconds histogram
controller_runtime_reconcile_time_seconds_bucket{controller="mergejob",le="+Inf"} 9
controller_runtime_reconcile_time_seconds_sum{controller="mergejob"} 9
controller_runtime_reconcile_time_seconds_count{controller="mergejob"} 9
controller_runtime_reconcile_time_seconds_bucket{controller="elastictrainingjob",le="+Inf"} 4
controller_runtime_reconcile_time_seconds_sum{controller="elastictrainingjob"} 0.2
controller_runtime_reconcile_time_seconds_count{controller="elastictrainingjob"} 4
# TYPE workqueue_queue_duration_seconds histogram
workqueue_queue_duration_seconds_bucket{controller="elastictrainingjob",name="elastictrainingjob",le="+Inf"} 2
workqueue_queue_duration_seconds_sum{controller="elastictrainingjob",name="elastictrainingjob"} 0.1
workqueue_queue_duration_seconds_count{controller="elastictrainingjob",name="elastictrainingjob"} 2
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.5
`
	f, err := figuresOf(strings.NewReader(metrics))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f).To(Equal(figures{reconciles: 4, took: 0.2, changes: 2, waited: 0.1, cpu: 1.5}))
	g.Expect(f.reconcile()).To(BeNumerically("~", 50, 1e-9))
	g.Expect(f.wait()).To(BeNumerically("~", 50, 1e-9))
	g.Expect(f.since(figures{reconciles: 1, cpu: 1})).To(Equal(figures{reconciles: 3, took: 0.2, changes: 2, waited: 0.1, cpu: 0.5}))
	_, err = figuresOf(strings.NewReader("a 1\n"))
	g.Expect(err).To(MatchError(ContainSubstring("does not tell of its reconciles")))
}

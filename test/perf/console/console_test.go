package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// rounds are some whose reconciles took so many milliseconds, without and with readers.
func rounds(pairs ...[2]float64) (all []round) {
	of := func(ms float64) minuteOf {
		return minuteOf{figures: figures{reconciles: 1000, took: ms, changes: 500, waited: 1, cpu: 3, times: taking(ms)}}
	}
	for _, p := range pairs {
		r := round{without: of(p[0]), with: of(p[1])}
		r.with.seen = seen{Opened: []time.Duration{time.Millisecond, 2 * time.Millisecond, 30 * time.Millisecond}, Events: 7}
		all = append(all, r)
	}
	return all
}

// taking has all reconciles in the narrow bucket of so many milliseconds.
func taking(ms float64) spread {
	const schema = 8
	return spread{schema: schema, buckets: map[int32]float64{int32(math.Ceil(math.Log2(ms/1000) * (1 << schema))): 1000}}
}

func TestWhatRoundsShow(t *testing.T) {
	for name, c := range map[string]struct {
		rounds []round
		says   string
		fails  bool
	}{
		"not slower": {rounds([2]float64{10, 10.1}, [2]float64{12, 12}, [2]float64{11, 11.1}),
			"For half of the reconciles: the aim is met; for nine of ten: the aim is met.", false},
		"slower": {rounds([2]float64{10, 12}, [2]float64{12, 14.5}, [2]float64{11, 13.2}),
			"nine of ten: **the aim is missed**.", true},
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
	refused[1].with.Failed = []string{"503"}
	NewWithT(t).Expect(judge(refused)).To(MatchError(ContainSubstring("1 pages could not be read, the first: 503")))
}

func TestTheTableHasEveryRound(t *testing.T) {
	g := NewWithT(t)
	o, err := parse([]string{"-commit=abc1234"})
	g.Expect(err).NotTo(HaveOccurred())
	text := report(o, rounds([2]float64{10, 10.5}, [2]float64{20, 21}))
	for _, line := range []string{
		"2 rounds of 1m0s without and 1m0s with 50 readers, from seed 1; at commit abc1234; ",
		"| a reconcile on average, ms | 10.00, 20.00 | 10.50, 21.00 | 1.050 (1.050 to 1.050) |",
		"| **half of the reconciles take up to, ms** | ", "| **nine of ten take up to, ms** | ",
		"| half of them within, ms | 2, 2 |", "| 99 of 100 within, ms | 30, 30 |", "| changes of pages that were followed | 7, 7 |",
	} {
		g.Expect(text).To(ContainSubstring(line))
	}
	_, err = parse([]string{"-rounds=17"})
	g.Expect(err).To(MatchError(ContainSubstring("-rounds is from 1 to 16")))
}

// Readers are a program of their own, which reads until it is told to stop.
func TestReadersReadUntilTheirInputEnds(t *testing.T) {
	g := NewWithT(t)
	opened, followed := make(chan string, 1), make(chan string, 1)
	operator := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := r.URL.Path + " " + r.Header.Get("Authorization")
		if r.Header.Get("Accept") != "text/event-stream" {
			opened <- said
			return
		}
		_, _ = fmt.Fprint(w, "event: page\n\n")
		w.(http.Flusher).Flush()
		followed <- said
		<-r.Context().Done()
	}))
	defer operator.Close()
	var out bytes.Buffer
	in, told := io.Pipe()
	ended := make(chan error)
	go func() { ended <- readUntilEnd(t.Context(), in, &out) }()
	one := person{Address: operator.Listener.Addr().String(), Token: "secret", Pages: []string{"jobs", "merges"}}
	g.Expect(json.NewEncoder(told).Encode([]person{one})).To(Succeed())
	g.Eventually(opened, "10s").Should(Receive(Equal("/console/merges Bearer secret")))
	g.Eventually(followed, "10s").Should(Receive(Equal("/console/jobs Bearer secret")))
	g.Eventually(opened, "20s").Should(Receive(Equal("/console/jobs Bearer secret")), "the next page, so that it has the one before")
	g.Expect(ended).NotTo(Receive())
	g.Expect(told.Close()).To(Succeed())
	g.Eventually(ended, "10s").Should(Receive(BeNil()))
	var got seen
	g.Expect(json.Unmarshal(out.Bytes(), &got)).To(Succeed())
	g.Expect(got.Failed).To(BeEmpty())
	g.Expect(got.Opened).NotTo(BeEmpty())
	g.Expect(got.Events).To(Equal(1))
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
	registry := prometheus.NewRegistry()
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "controller_runtime_reconcile_time_seconds", NativeHistogramBucketFactor: 1.1,
	}, []string{"controller"})
	waited := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_queue_duration_seconds"}, []string{"controller"})
	cpu := prometheus.NewCounter(prometheus.CounterOpts{Name: "process_cpu_seconds_total"})
	registry.MustRegister(took, waited, cpu)
	scraped := func() (figures, error) {
		families, err := registry.Gather()
		g.Expect(err).NotTo(HaveOccurred())
		var text bytes.Buffer
		format := expfmt.NewFormat(expfmt.TypeProtoDelim)
		for _, family := range families {
			g.Expect(expfmt.NewEncoder(&text, format).Encode(family)).To(Succeed())
		}
		return figuresOf(expfmt.NewDecoder(&text, format))
	}
	_, err := scraped()
	g.Expect(err).To(MatchError(ContainSubstring("does not tell of its reconciles")))

	took.WithLabelValues("mergejob").Observe(9)
	waited.WithLabelValues(controller).Observe(0.05)
	cpu.Add(1)
	for range 10 {
		took.WithLabelValues(controller).Observe(0.3)
	}
	before, err := scraped()
	g.Expect(err).NotTo(HaveOccurred())
	waited.WithLabelValues(controller).Observe(0.07)
	cpu.Add(0.5)
	for i := range 100 {
		took.WithLabelValues(controller).Observe(0.001 * float64(i+1))
	}
	after, err := scraped()
	g.Expect(err).NotTo(HaveOccurred())
	f := after.since(before)
	g.Expect(f.reconciles).To(BeEquivalentTo(100))
	g.Expect(f.reconcile()).To(BeNumerically("~", 50.5, 1e-9), "none of the time before")
	g.Expect(f.wait()).To(BeNumerically("~", 70, 1e-9))
	g.Expect(f.cpu).To(BeNumerically("~", 0.5, 1e-9))
	g.Expect(f.half()).To(BeNumerically("~", 50, 2))
	g.Expect(f.most()).To(BeNumerically("~", 90, 3))
}

// A histogram with too many buckets joins them, also between two scrapes.
func TestSpreadsOfTwoWidths(t *testing.T) {
	g := NewWithT(t)
	fine := spread{schema: 3, none: 2, zero: 0.000001, buckets: map[int32]float64{-40: 10, -39: 10, -38: 10, -37: 10}}
	coarse := spread{schema: 2, none: 2, zero: 0.000001, buckets: map[int32]float64{-20: 10, -19: 20, -18: 10, 4: 5}}
	g.Expect(fine.coarser(2).buckets).To(Equal(map[int32]float64{-20: 10, -19: 20, -18: 10}))
	since := coarse.since(fine)
	g.Expect(since.within(0.5)).To(BeNumerically("~", 1000*math.Exp2(3.5/4), 1e-6), "the five that came")
	g.Expect(since.none).To(BeZero())
	g.Expect(spread{none: 3, zero: 0.001, buckets: map[int32]float64{8: 1}}.within(0.5)).To(BeEquivalentTo(1), "what takes no time")
}

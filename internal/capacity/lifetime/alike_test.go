package lifetime

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// sweeps are thirty sweeps of a queue, a day apart, of ten runs each. If they are alike, those of one sweep last equally long but
// for a tenth.
func sweeps(queue string, alike bool) (all []Ended) {
	r := rand.New(rand.NewPCG(7, uint64(len(queue))))
	for sweep := range 30 {
		usual := math.Exp(1.5 * r.NormFloat64())
		for i := range 10 {
			hours := usual * (0.95 + 0.1*r.Float64())
			if !alike {
				hours = math.Exp(1.5 * r.NormFloat64())
			}
			came := now.Add(-time.Duration(sweep+2)*24*time.Hour + time.Duration(i)*time.Minute)
			lasted := time.Duration(hours * float64(time.Hour))
			all = append(all, Ended{Gang{"ads", "of-" + queue, queue, came}, came.Add(lasted), lasted})
		}
	}
	return all
}

// many are gangs of a new task in a queue that came so far apart, and have run for so long.
func many(queue string, apart time.Duration, ran ...time.Duration) (all []Live) {
	for i, r := range ran {
		all = append(all, Live{Gang{"ads", "new", queue, now.Add(time.Duration(i) * apart)}, r})
	}
	return all
}

// sums are what gangs last together from now on, in many futures, in hours and ascending.
func sums(h *History, gangs []Live) (all []float64) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 400 {
		future, sum := NewFuture(r), 0.0
		for _, g := range gangs {
			draw, _ := h.DrawFor(g)
			sum += draw(future).Hours()
		}
		all = append(all, sum)
	}
	slices.Sort(all)
	return all
}

// spread is the ratio of the 95th to the 5th percentile.
func spread(sums []float64) float64 { return sums[len(sums)*95/100] / sums[len(sums)*5/100] }

func TestGangsOfASweepAreAlikeInAFuture(t *testing.T) {
	g := NewWithT(t)
	waiting := make([]time.Duration, 20)
	inOne, inOthers := many("sweeps", time.Minute, waiting...), many("others", time.Minute, waiting...)
	apart := many("sweeps", 3*time.Hour, waiting...)
	h := NewHistory(slices.Concat(sweeps("sweeps", true), sweeps("others", false)), slices.Concat(inOne, inOthers))
	g.Expect(h.byQueue["sweeps"].alike).To(BeNumerically(">", 0.9))
	g.Expect(h.byTask[task{"ads", "of-sweeps"}].alike).To(BeNumerically(">", 0.9))
	g.Expect(h.byQueue["others"].alike).To(BeNumerically("<", 0.1))
	g.Expect(spread(sums(h, inOne))).To(BeNumerically(">", 10*spread(sums(h, inOthers))), "others even out")
	h = NewHistory(sweeps("sweeps", true), apart)
	g.Expect(spread(sums(h, apart))).To(BeNumerically("<", 10), "gangs of several sweeps even out as well")
}

func TestEachGangByItselfIsAsLikelyToLastLongWhetherOthersAreAlikeOrNot(t *testing.T) {
	for name, ran := range map[string]time.Duration{"waits": 0, "has run for an hour": time.Hour} {
		g := NewWithT(t)
		one := many("sweeps", 0, ran)
		h := NewHistory(sweeps("sweeps", true), one)
		draw, from := h.DrawFor(one[0])
		g.Expect(from).To(Equal(FromQueue), name)
		r, all := rand.New(rand.NewPCG(11, 12)), []time.Duration{}
		for range 4000 {
			all = append(all, ran+draw(NewFuture(r)))
		}
		slices.Sort(all)
		lasted := h.byQueue["sweeps"].lasted
		first, _ := slices.BinarySearch(lasted, ran+1)
		for _, part := range []float64{0.25, 0.5, 0.75} {
			at := lasted[first+int(part*float64(len(lasted)-first))]
			below, _ := slices.BinarySearch(all, at)
			g.Expect(float64(below)/float64(len(all))).To(BeNumerically("~", part, 0.03), "%s, %.2f", name, part)
		}
	}
}

func TestThoseOfASweepThatHaveEndedOrRunTellOfTheOthers(t *testing.T) {
	g := NewWithT(t)
	past := sweeps("sweeps", true)
	middle := func(ended []Ended, live []Live) float64 {
		waits := many("sweeps", 0, 0)
		all := sums(NewHistory(slices.Concat(past, ended), slices.Concat(live, waits)), waits)
		return all[len(all)/2]
	}
	usual := middle(nil, nil)
	var short []Ended
	for i := range 5 {
		lasted := 6 * time.Minute
		came := now.Add(-time.Duration(i) * time.Minute)
		short = append(short, Ended{Gang{"ads", "short", "sweeps", came}, came.Add(lasted), lasted})
	}
	g.Expect(middle(short, nil)).To(BeNumerically("<", usual/2), "five ended after 6 minutes")
	long := many("sweeps", time.Minute, 8*time.Hour, 8*time.Hour, 8*time.Hour)
	g.Expect(middle(nil, long)).To(BeNumerically(">", 4*usual), "three have run for 8 hours")
	longest := many("sweeps", time.Minute, 1000*time.Hour, 1000*time.Hour, 1000*time.Hour)
	g.Expect(middle(nil, longest)).To(BeNumerically(">", 4*usual), "three have run for longer than any before")
	for i := range short {
		short[i].Came = short[i].Came.Add(-2 * time.Hour)
	}
	g.Expect(middle(short, nil)).To(BeNumerically("~", usual, usual/2), "another sweep tells nothing")
}

func TestHowAlikeFewRunsAreIsTakenFromOtherQueues(t *testing.T) {
	g := NewWithT(t)
	var few []Ended
	for i, e := range hours("few", "few", 1, 2, 3, 4, 5) {
		e.Came = now.Add(time.Duration(i) * time.Minute)
		few = append(few, e)
	}
	h := NewHistory(slices.Concat(sweeps("sweeps", true), few), nil)
	g.Expect(h.byQueue["few"].alike).To(BeNumerically("~", 0.5, 0.2))
	g.Expect(NewHistory(few, nil).byQueue["few"].alike).To(BeNumerically("<", 0.3), "and without others hardly any")
	same := NewHistory(hours("same", "same", 3, 3, 3, 3, 3, 3), nil)
	g.Expect(same.byQueue["same"].alike).To(BeZero(), "what never varies says nothing")
}

func TestWhatIsDrawnAboveANumberIsAboveIt(t *testing.T) {
	g := NewWithT(t)
	r := rand.New(rand.NewPCG(15, 16))
	for _, number := range []float64{math.Inf(-1), -9, 0, 4.9, 5.1, 12, 40} {
		sum := 0.0
		for range 2000 {
			x := normalAbove(r, number)
			g.Expect(x).To(BeNumerically(">=", number))
			sum += x
		}
		// The mean of what is above, for large numbers by Mills' ratio.
		mean := number + 1/number
		switch {
		case number < 0:
			mean = 0
		case number == 0:
			mean = math.Sqrt(2 / math.Pi)
		}
		g.Expect(sum/2000).To(BeNumerically("~", mean, 0.06), "%g", number)
	}
}

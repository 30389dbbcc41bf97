package lifetime

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// sweeps are thirty sweeps of a queue, of ten runs each. If they are alike, those of one sweep last equally long but for a tenth.
func sweeps(queue string, alike bool, r *rand.Rand) (all []Ended) {
	for sweep := range 30 {
		usual := math.Exp(1.5 * r.NormFloat64())
		for i := range 10 {
			hours := usual * (0.95 + 0.1*r.Float64())
			if !alike {
				hours = math.Exp(1.5 * r.NormFloat64())
			}
			began := now.Add(time.Duration(sweep)*24*time.Hour + time.Duration(i)*time.Minute)
			lasted := time.Duration(hours * float64(time.Hour))
			all = append(all, Ended{Namespace: "ads", Task: "of-" + queue, Queue: queue, At: began.Add(lasted), Lasted: lasted})
		}
	}
	return all
}

// spread is the ratio of the 95th to the 5th percentile of what twenty gangs last together, over many futures.
func spread(h *History, queue string) float64 {
	draw, _ := h.DrawFor("ads", "new", queue, 0)
	r, sums := rand.New(rand.NewPCG(5, 6)), []float64{}
	for range 400 {
		future, sum := NewFuture(r), 0.0
		for range 20 {
			sum += draw(future).Hours()
		}
		sums = append(sums, sum)
	}
	slices.Sort(sums)
	return sums[380] / sums[20]
}

func TestGangsOfASweepAreAlikeInAFuture(t *testing.T) {
	g := NewWithT(t)
	r := rand.New(rand.NewPCG(7, 8))
	h := NewHistory(slices.Concat(sweeps("sweeps", true, r), sweeps("others", false, r)))
	g.Expect(h.byQueue["sweeps"].alike).To(BeNumerically(">", 0.9))
	g.Expect(h.byQueue["others"].alike).To(BeNumerically("<", 0.1))
	g.Expect(spread(h, "sweeps")).To(BeNumerically(">", 10*spread(h, "others")),
		"many of a sweep last long or short together, many others even out")
}

func TestEachGangByItselfIsAsLikelyToLastLongWhetherOthersAreAlikeOrNot(t *testing.T) {
	g := NewWithT(t)
	h := NewHistory(sweeps("sweeps", true, rand.New(rand.NewPCG(9, 10))))
	draw, _ := h.DrawFor("ads", "new", "sweeps", 0)
	r, all := rand.New(rand.NewPCG(11, 12)), []time.Duration{}
	for range 4000 {
		all = append(all, draw(NewFuture(r)))
	}
	slices.Sort(all)
	lasted := h.byQueue["sweeps"].lasted
	for _, part := range []float64{0.25, 0.5, 0.75} {
		below, _ := slices.BinarySearch(all, lasted[int(part*float64(len(lasted)))])
		g.Expect(float64(below)/float64(len(all))).To(BeNumerically("~", part, 0.03), "%.2f", part)
	}
}

func TestHowAlikeFewRunsAreIsTakenFromOtherQueues(t *testing.T) {
	g := NewWithT(t)
	few := hours("train", "few", 1, 2, 3, 4, 5)
	h := NewHistory(slices.Concat(sweeps("sweeps", true, rand.New(rand.NewPCG(13, 14))), few))
	g.Expect(h.byQueue["few"].alike).To(BeNumerically("~", h.byQueue["sweeps"].alike, 0.4))
	g.Expect(NewHistory(few).byQueue["few"].alike).To(BeNumerically("<", 0.3), "and without others hardly any")
	same := NewHistory(hours("train", "same", 3, 3, 3, 3, 3, 3))
	g.Expect(same.byQueue["same"].alike).To(BeZero(), "what never varies says nothing")
}

package sizing

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// gigabytes are days on which memory peaked at so much, in GiB; 0 for a day on which nothing was seen.
func gigabytes(peaks ...int64) []Usage {
	days := make([]Usage, len(peaks))
	for i, peak := range peaks {
		if peak > 0 {
			days[i] = aDay(1, peak*gib)
		}
	}
	return days
}

func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		days []Usage
		want float64
	}{
		"nothing was seen":                   {nil, 1},
		"the same every day":                 {gigabytes(10, 10, 10, 10, 10, 10, 10), 1},
		"up and down":                        {gigabytes(10, 14, 9, 13, 10, 12, 11), 1},
		"down":                               {gigabytes(16, 15, 14, 13, 12, 11, 10), 1},
		"up by a tenth of the first a day":   {gigabytes(10, 11, 12, 13, 14, 15, 16), 1 + 4*1.0/16},
		"two days of seven were without":     {gigabytes(10, 0, 12, 13, 0, 15, 16), 1 + 4*1.0/16},
		"one day that was unlike the others": {gigabytes(10, 40, 12, 13, 14, 15, 16), 1 + 4*1.0/16},
		"four days":                          {gigabytes(10, 12, 14, 16), 1 + 4*2.0/16},
		"three days are few":                 {gigabytes(10, 12, 14), 1},
		"once more and then the same":        {gigabytes(10, 10, 10, 20, 20, 20, 20), 1},
		"twice as much every day":            {gigabytes(1, 2, 4, 8, 16, 32, 64), 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := trainer(c.days...)
			g.Expect(growthFactor(h.Days[Part{Worker, "trainer"}], Memory)).To(BeNumerically("~", c.want, 1e-9))
			g.Expect(growthFactor(h.Days[Part{Worker, "trainer"}], CPU)).To(BeEquivalentTo(1))
		})
	}
}

// The cap looks ahead, and says so.
func TestWhatGrowsGetsMore(t *testing.T) {
	g := NewWithT(t)
	h := trainer(gigabytes(10, 11, 12, 13, 14, 15, 16)...)
	_, memory := sized(asking("16", "64Gi"), h, enforce("small-traffic"))
	g.Expect(memory.Sized.String()).To(Equal("26Gi"))
	g.Expect(memory.Message).To(Equal("16Gi peak memory over 7 of 7 days × 1.3 × 1.25 for growth from day to day = 26Gi."))
	_, memory = sized(asking("16", "24Gi"), h, enforce("small-traffic"))
	g.Expect(memory.Reason).To(Equal(v1beta1.SizedFits))
}

// What was held down neither makes a trend nor ends one.
func TestWhatWasHeldIsNoTrend(t *testing.T) {
	g := NewWithT(t)
	days := gigabytes(10, 11, 12, 13, 14, 15, 16)
	free := trainer(days...).Days
	for i := range days {
		days[i].Throttled.Add(32, 20)
		days[i].MemoryHeld = int64(20-i) * gib
	}
	g.Expect(trainer(days...).Days).To(Equal(free))
}

func TestLawsOfGrowth(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	c := rand.New(rand.NewPCG(seed, 2))
	for range 2000 {
		g := NewWithT(t)
		days := make([]Day, c.IntN(28))
		for i := range days {
			days[i] = Day{Number: int64(i), Memory: c.Int64N(1 << 30)}
		}
		grows := growthFactor(days, Memory)
		g.Expect(grows).To(And(BeNumerically(">=", 1), BeNumerically("<=", mostGrowth)), "seed %d", seed)
		later := make([]Day, len(days))
		for to, from := range c.Perm(len(days)) {
			later[to] = Day{Number: days[from].Number + 1000, Memory: 4 * days[from].Memory}
		}
		g.Expect(growthFactor(later, Memory)).To(BeNumerically("~", grows, 1e-9), "seed %d: order, date and scale are no trend's", seed)
	}
}

// The share of the time that suffices within a bucket is told within it.
func TestWithinABucket(t *testing.T) {
	g := NewWithT(t)
	u := Usage{}
	u.CPU.Add(2, 100)
	upper := bucketBound(bucketOf(2))
	for share, want := range map[float64]float64{1: upper, 0.5: upper * math.Pow(step, -0.5), 0.01: upper * math.Pow(step, -0.99)} {
		enough, known := u.Quantile(share)
		g.Expect(known).To(BeTrue())
		g.Expect(enough).To(BeNumerically("~", want, 1e-9))
	}
}

package lifetime

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// together is how far apart two runs may have begun whose likeness counts, and neighbours how many later ones each is held to.
	together, neighbours = time.Hour, 5
	// doubt is how many pairs weigh as much as what is believed without them.
	doubt = 20
	// mostAlike bounds how alike gangs are drawn, so that no future hangs on one number alone.
	mostAlike = 0.95
)

// run is one that has ended.
type run struct {
	began  time.Time
	lasted time.Duration
}

// pool is what lifetimes are drawn from together.
type pool struct {
	runs []run
	// lasted are their lifetimes, ascending.
	lasted []time.Duration
	// alike is the correlation, from 0 to 1, of the normal scores of lifetimes of runs that began together.
	alike float64
}

func (p *pool) keep(one run) {
	if len(p.runs) < mostKept {
		p.runs = append(p.runs, one)
	}
}

// sort sets the lifetimes, and has the runs in the order in which they began.
func (p *pool) sort() {
	slices.SortStableFunc(p.runs, func(a, b run) int { return a.began.Compare(b.began) })
	for _, r := range p.runs {
		p.lasted = append(p.lasted, r.lasted)
	}
	slices.Sort(p.lasted)
}

// learnAlike learns how alike runs of each pool are that began together. Where few did, it is as in queues on average; and where
// few did in queues, gangs are drawn each by itself.
func (h *History) learnAlike() {
	var sum, pairs float64
	for _, queue := range slices.Sorted(maps.Keys(h.byQueue)) { // In order, so that sums are the same each time.
		p := h.byQueue[queue]
		p.sort()
		s, n := p.likeness()
		sum, pairs = sum+s, pairs+n
	}
	general := sum / (pairs + doubt)
	learn := func(p *pool) {
		s, n := p.likeness()
		p.alike = min(max(0, (s+doubt*general)/(n+doubt)), mostAlike)
	}
	for _, p := range h.byQueue {
		learn(p)
	}
	for _, p := range h.byTask {
		p.sort()
		learn(p)
	}
	// What runs in all queues is not submitted together.
	h.all.sort()
}

// likeness returns the sum of products of the normal scores of runs that began together, in units of their variance, and the
// number of pairs.
func (p *pool) likeness() (sum, pairs float64) {
	scores := make([]float64, len(p.runs))
	variance := 0.0
	for i, r := range p.runs {
		first, _ := slices.BinarySearch(p.lasted, r.lasted)
		next, _ := slices.BinarySearch(p.lasted, r.lasted+1)
		scores[i] = normalOf(float64(first+next) / 2 / float64(len(p.lasted)))
		variance += scores[i] * scores[i] / float64(len(p.runs))
	}
	if variance == 0 {
		return 0, 0
	}
	for i, r := range p.runs {
		for k := i + 1; k < len(p.runs) && k <= i+neighbours && p.runs[k].began.Sub(r.began) <= together; k++ {
			sum, pairs = sum+scores[i]*scores[k]/variance, pairs+1
		}
	}
	return sum, pairs
}

// Future is one way in which things may go on. Draws of one future are alike where their source was: by a Gaussian copula of one
// factor for each source (Vasicek, Loan portfolio value, Risk, 2002).
type Future struct {
	random *rand.Rand
	common map[*pool]float64
}

// NewFuture draws a future.
func NewFuture(random *rand.Rand) *Future {
	return &Future{random: random, common: map[*pool]float64{}}
}

// oddsOf draws a number from 0 to 1, each equally likely. Numbers of one future and pool are close to each other as far as runs
// of the pool were alike.
func (f *Future) oddsOf(p *pool) float64 {
	common, known := f.common[p]
	if !known {
		common = f.random.NormFloat64()
		f.common[p] = common
	}
	score := math.Sqrt(p.alike)*common + math.Sqrt(1-p.alike)*f.random.NormFloat64()
	return math.Erfc(-score/math.Sqrt2) / 2
}

// normalOf is the number below which that part, between 0 and 1, of a standard normal distribution lies.
func normalOf(part float64) float64 { return math.Sqrt2 * math.Erfinv(2*part-1) }

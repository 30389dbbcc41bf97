package lifetime

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// together is how far apart two gangs may have come that are alike, and neighbours how many later ones each is held to.
	together, neighbours = time.Hour, 5
	// doubt is how many pairs weigh as much as what is believed without them, and mostPairs how many of one pool count for that.
	doubt, mostPairs = 20, 50
	// mostAlike bounds how alike gangs are drawn, so that no future hangs on one number alone.
	mostAlike = 0.95
)

// run is a gang that has ended, or has lasted for so long and goes on.
type run struct {
	came   time.Time
	lasted time.Duration
	ended  bool
}

// pool is what lifetimes are drawn from together.
type pool struct {
	// runs have ended, and live have not.
	runs, live []run
	// lasted are the lifetimes of runs, ascending.
	lasted []time.Duration
	// sum is that of the products of normal scores of runs that came together, in units of their variance, and pairs how many.
	sum, pairs float64
	// alike is the correlation, from 0 to 1, of the normal scores of lifetimes of gangs that came together.
	alike float64
	// members are runs and live in the order in which they came, begins when bursts of them begin, and bursts those that were asked
	// for, by number.
	members []run
	begins  []time.Time
	bursts  map[int]*burst
}

func (p *pool) keep(one run) {
	if len(p.runs) < mostKept {
		p.runs = append(p.runs, one)
	}
}

// sort sets the lifetimes, and has the runs in the order in which they came.
func (p *pool) sort() {
	slices.SortStableFunc(p.runs, compareCame)
	for _, r := range p.runs {
		p.lasted = append(p.lasted, r.lasted)
	}
	slices.Sort(p.lasted)
}

func compareCame(a, b run) int {
	return cmp.Or(a.came.Compare(b.came), cmp.Compare(a.lasted, b.lasted))
}

// learn learns how alike gangs of each pool are that came together. Where few did, it is as in all pools of the kind, each with a
// bounded weight; and where few did in any, gangs are hardly alike.
func (p pools[K]) learn() {
	sum, pairs := 0.0, float64(doubt)
	for _, one := range p {
		one.sort()
		if one.learn(); one.pairs > 0 {
			weight := min(1, mostPairs/one.pairs)
			sum, pairs = sum+weight*one.sum, pairs+weight*one.pairs
		}
	}
	for _, one := range p {
		alike := (one.sum + doubt*sum/pairs) / (one.pairs + doubt)
		// Rounded, because the sums are a little different in another order, and a map has any.
		one.alike = min(max(0, math.Round(alike*1000)/1000), mostAlike)
	}
}

// learn sets the sum and the number of pairs.
func (p *pool) learn() {
	scores := make([]float64, len(p.runs))
	variance := 0.0
	for i, r := range p.runs {
		scores[i] = p.scoreOf(r.lasted)
		variance += scores[i] * scores[i] / float64(len(p.runs))
	}
	if variance == 0 {
		return
	}
	// Scores of one pool add up to about 0, so that the product of two which have nothing to do with each other is less on average.
	chance := 1 / float64(len(p.runs)-1)
	for i, r := range p.runs {
		for k := i + 1; k < len(p.runs) && k <= i+neighbours && p.runs[k].came.Sub(r.came) <= together; k++ {
			p.sum, p.pairs = p.sum+scores[i]*scores[k]/variance+chance, p.pairs+1
		}
	}
}

// scoreOf is the normal score of a lifetime: of runs that last equally long the middle one's, and of one that lasts longer than
// all that of the longest.
func (p *pool) scoreOf(lasted time.Duration) float64 {
	first, _ := slices.BinarySearch(p.lasted, lasted)
	next, _ := slices.BinarySearch(p.lasted, lasted+1)
	all := float64(len(p.lasted))
	return normalOf(min(float64(first+next)/2, all-0.5) / all)
}

// normalOf is the number below which that part, from 0 to 1, of a standard normal distribution lies.
func normalOf(part float64) float64 { return math.Sqrt2 * math.Erfinv(2*part-1) }

// normalAbove draws from a standard normal distribution what is above a number.
func normalAbove(r *rand.Rand, number float64) float64 {
	if number > 5 {
		return number + r.ExpFloat64()/number // Parts so close to 1 have no digits left, and there the tail is an exponential one.
	}
	part := below(number)
	return normalOf(part + (1-part)*r.Float64())
}

// below is the part of a standard normal distribution that lies below a number.
func below(score float64) float64 { return math.Erfc(-score/math.Sqrt2) / 2 }

package lifetime

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"
)

// A burst is gangs of a pool that came one after another, without an hour between two of them. Their normal scores are
//
//	score = sqrt(alike) * common + sqrt(1 - alike) * own
//
// with a common number for the burst and one of its own for each gang, both normal: a Gaussian copula of one factor (Vasicek,
// Loan portfolio value, Risk, 2002). Those of the burst that have ended tell their score, and those that run a bound below it:
// by Bayes' rule this says which common numbers are likely.
type burst struct {
	alike float64
	// likely are, for each number of the grid, how likely the common number is to be that or less.
	likely [grid]float64
}

const (
	// grid is how many common numbers are told apart, from -farthest to farthest.
	grid     = 41
	farthest = 4.0
	// witnesses is how many gangs of a burst count, the latest: that bursts of days are alike from end to end is not known.
	witnesses = 20
)

func commonAt(i int) float64 { return farthest * (2*float64(i)/(grid-1) - 1) }

// burstOf is the burst in which a gang of the pool came; nil where gangs are not alike.
func (p *pool) burstOf(came time.Time) *burst {
	if p.alike == 0 {
		return nil
	}
	if p.bursts == nil {
		p.findBursts()
	}
	at := sort.Search(len(p.begins), func(i int) bool { return p.begins[i].After(came) }) - 1
	if p.bursts[at] == nil {
		p.bursts[at] = p.newBurst(at)
	}
	return p.bursts[at]
}

func (p *pool) findBursts() {
	p.bursts = map[int]*burst{}
	p.members = slices.Concat(p.live, p.runs)
	slices.SortStableFunc(p.members, compareCame)
	for i, r := range p.members {
		if i == 0 || r.came.Sub(p.members[i-1].came) > together {
			p.begins = append(p.begins, r.came)
		}
	}
}

// membersOf are the members of the burst with that number.
func (p *pool) membersOf(number int) []run {
	if number < 0 {
		return nil
	}
	at := func(burst int) int {
		if burst == len(p.begins) {
			return len(p.members)
		}
		return sort.Search(len(p.members), func(i int) bool { return !p.members[i].came.Before(p.begins[burst]) })
	}
	return p.members[at(number):at(number+1)]
}

// newBurst learns of the burst with that number from those of it that have begun.
func (p *pool) newBurst(number int) *burst {
	b, left := &burst{alike: p.alike}, witnesses
	common, own := math.Sqrt(b.alike), math.Sqrt(1-b.alike)
	var likely [grid]float64
	for i := range likely {
		likely[i] = -commonAt(i) * commonAt(i) / 2
	}
	for _, r := range slices.Backward(p.membersOf(number)) {
		if r.lasted <= 0 {
			continue // It has not begun.
		}
		if left--; left < 0 {
			break
		}
		score := p.scoreOf(r.lasted)
		for k := range likely {
			miss := (common*commonAt(k) - score) / own
			if r.ended {
				likely[k] -= miss * miss / 2
			} else {
				likely[k] += math.Log(max(below(miss), math.SmallestNonzeroFloat64))
			}
		}
	}
	sum, most := 0.0, slices.Max(likely[:])
	for i, l := range likely {
		sum += math.Exp(l - most)
		b.likely[i] = sum
	}
	for i := range b.likely {
		b.likely[i] /= sum
	}
	return b
}

// Future is one way in which things may go on.
type Future struct {
	random *rand.Rand
	common map[*burst]float64
}

// NewFuture draws a future.
func NewFuture(random *rand.Rand) *Future {
	return &Future{random: random, common: map[*burst]float64{}}
}

// partOf draws which part of all runs, from 0 to 1, last no longer than a gang of a burst, or of none, that has lasted longer
// than the part shorter of them.
func (f *Future) partOf(b *burst, shorter float64) float64 {
	if b == nil {
		return shorter + (1-shorter)*f.random.Float64()
	}
	of, known := f.common[b]
	if !known {
		at, _ := slices.BinarySearch(b.likely[:], f.random.Float64())
		of = commonAt(min(at, grid-1)) + (f.random.Float64()-0.5)*2*farthest/(grid-1)
		f.common[b] = of
	}
	common, own := math.Sqrt(b.alike)*of, math.Sqrt(1-b.alike)
	return below(common + own*normalAbove(f.random, (normalOf(shorter)-common)/own))
}

package main

import (
	"math"
	"runtime"
	"sync"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// contestant is who says what a container should request.
type contestant int

// Contestants.
const (
	tideline contestant = iota
	vpaTarget
	vpaUpperBound
	krr
	contestants            // is how many there are
	asAsked     contestant = -1
)

var names = [contestants]string{"Tideline", "VPA target", "VPA upper bound", "KRR"}

// A run is said to be throttled if it needs more CPU than it requests in more than this share of its samples.
const oftenThrottled = 0.05

func newRecommender(who contestant, t task) recommender {
	switch who {
	case tideline:
		return &byTideline{task: t, part: trainerPart}
	case vpaTarget, vpaUpperBound:
		return newVPA(t, who == vpaUpperBound)
	case krr:
		return &byKRR{}
	default:
		return asks{}
	}
}

// asks recommends nothing.
type asks struct{}

func (asks) recommend(int, int) (amounts, bool) { return amounts{}, false }
func (asks) learn(int, int, seen, amounts)      {}
func (asks) end(int)                            {}

// seedResult is all that is known of a seed: under each contestant as it is, and at Tideline's mean slack.
type seedResult struct {
	asked       result
	plain, even [contestants]result
}

func judgeSeed(tasks []task) seedResult {
	var all seedResult
	all.asked = judge(tasks, policy{who: asAsked})
	for who := range contestants {
		all.plain[who] = judge(tasks, policy{who: who})
		all.even[who] = all.plain[who]
		if who != tideline {
			all.even[who] = equalised(tasks, who, all.plain[tideline].tiers)
		}
	}
	return all
}

// judgeSeeds plays the tasks of all seeds, some seeds at a time.
func judgeSeeds(seeds []uint64, n int, draw func(seed uint64, index int) task) []seedResult {
	all := make([]seedResult, len(seeds))
	var group sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, seed := range seeds {
		group.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			tasks := make([]task, n)
			for at := range tasks {
				tasks[at] = draw(seed, at)
			}
			all[i] = judgeSeed(tasks)
		})
	}
	group.Wait()
	return all
}

// interval is a mean over seeds and its 95 % interval.
type interval struct{ mean, least, most float64 }

// excludesZero tells whether the interval is on one side of zero.
func (i interval) excludesZero() bool { return i.least > 0 || i.most < 0 }

// student are quantiles 0.975 of Student's t, by degrees of freedom, from a table.
var student = map[int]float64{1: 12.706, 3: 3.182, 7: 2.365, 11: 2.201, 15: 2.131, 19: 2.093, 31: 2.040}

// intervalOf is that of the mean of values, one for each seed.
func intervalOf(values []float64) interval {
	mean, n := average(values), float64(len(values))
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	half := student[len(values)-1] * math.Sqrt(squares/(n-1)/n)
	return interval{mean, mean - half, mean + half}
}

// more is by how many points the share of violated runs of a rival is above that of Tideline at equal mean slack, in a tier: of
// each seed the difference, over seeds their interval.
func more(all []seedResult, who contestant, tier string) interval {
	var differences []float64
	for i := range all {
		of := func(who contestant) float64 {
			s := all[i].even[who].tiers[tier]
			return s.share(s.violated)
		}
		differences = append(differences, of(who)-of(tideline))
	}
	return intervalOf(differences)
}

func tierNames() []string {
	var all []string
	for _, tier := range config.DefaultTiers() {
		all = append(all, tier.Name)
	}
	return all
}

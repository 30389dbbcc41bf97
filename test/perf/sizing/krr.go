package main

import (
	"math"
	"slices"
)

const (
	// Of KRR's simple strategy, by default (robusta_krr/strategies/simple.py): the percentile of CPU, and what becomes of the
	// highest memory. It knows no kills unless it is asked to.
	krrPercentile   = 0.95
	krrMemoryFactor = 1.15
)

// byKRR is what KRR's simple strategy recommends, from as much history as it has by default: 336 hours. It needs 100 samples.
type byKRR struct{ days []krrDay }

type krrDay struct {
	day  int
	cpu  []float64
	peak float64
}

const (
	krrDays   = 14
	krrPoints = 100
)

func (k *byKRR) recommend(day, _ int) (amounts, bool) {
	k.days = slices.DeleteFunc(k.days, func(d krrDay) bool { return d.day < day-krrDays })
	var cpu []float64
	peak := 0.0
	for _, d := range k.days {
		cpu, peak = append(cpu, d.cpu...), max(peak, d.peak)
	}
	if len(cpu)*minutes < krrPoints {
		return amounts{}, false
	}
	return amounts{interpolated(sortedCopy(cpu), krrPercentile), peak * krrMemoryFactor}, true
}

func (k *byKRR) learn(day, _ int, s seen, _ amounts) {
	k.days = append(k.days, krrDay{day, slices.Clone(s.cpu), slices.Max(s.memory)})
}

func (k *byKRR) end(int) {}

// interpolated is a percentile of sorted values as NumPy has it, between the two that are nearest.
func interpolated(sorted []float64, share float64) float64 {
	below, part := math.Modf(share * float64(len(sorted)-1))
	at := int(below)
	if at+1 == len(sorted) {
		return sorted[at]
	}
	return sorted[at] + part*(sorted[at+1]-sorted[at])
}

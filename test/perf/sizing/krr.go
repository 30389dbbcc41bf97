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

// byKRR is what KRR's simple strategy recommends.
func byKRR(o observed) amounts {
	var cpu []float64
	peak := 0.0
	for _, r := range o.runs {
		cpu = append(cpu, r.cpu...)
		peak = max(peak, slices.Max(r.memory))
	}
	slices.Sort(cpu)
	return amounts{interpolated(cpu, krrPercentile), peak * krrMemoryFactor}
}

// interpolated is a percentile of sorted values as NumPy has it, between the two that are nearest.
func interpolated(sorted []float64, share float64) float64 {
	below, part := math.Modf(share * float64(len(sorted)-1))
	at := int(below)
	if at+1 == len(sorted) {
		return sorted[at]
	}
	return sorted[at] + part*(sorted[at+1]-sorted[at])
}

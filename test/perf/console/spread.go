package main

import (
	"maps"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// spread is how many reconciles took how long, from a native histogram: bucket i of schema n has those above 2^((i-1)/2^n)
// seconds and up to 2^(i/2^n), as https://prometheus.io/docs/specs/native_histograms/ has it.
type spread struct {
	schema int32
	// none is how many took next to no time, and up to that zero seconds.
	none    float64
	zero    float64
	buckets map[int32]float64
}

// spreadOf reads a histogram of times, which has no negative buckets.
func spreadOf(h *dto.Histogram) spread {
	s := spread{schema: h.GetSchema(), none: float64(h.GetZeroCount()), zero: h.GetZeroThreshold(), buckets: map[int32]float64{}}
	index, count, delta := int32(0), int64(0), 0
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			count += h.GetPositiveDelta()[delta]
			delta++
			s.buckets[index] = float64(count)
			index++
		}
	}
	return s
}

// coarser is the spread with buckets joined into the wider ones of a lower schema. A histogram joins its own where it has too
// many.
func (s spread) coarser(schema int32) spread {
	to := spread{schema: schema, none: s.none, zero: s.zero, buckets: map[int32]float64{}}
	width := math.Exp2(float64(s.schema - schema))
	for index, n := range s.buckets {
		to.buckets[int32(math.Ceil(float64(index)/width))] += n
	}
	return to
}

// since is what came after another time.
func (s spread) since(before spread) spread {
	schema := min(s.schema, before.schema)
	if len(before.buckets) == 0 {
		schema = s.schema
	}
	after := s.coarser(schema)
	after.none -= before.none
	if len(before.buckets) > 0 {
		for index, n := range before.coarser(schema).buckets {
			after.buckets[index] -= n
		}
	}
	return after
}

// within is how long that part of the reconciles took at most, in milliseconds, as if those of a bucket were spread over it
// evenly by the logarithm of their times.
func (s spread) within(part float64) float64 {
	all := s.none
	for _, n := range s.buckets {
		all += n
	}
	sought := part*all - s.none
	if sought <= 0 {
		return 1000 * s.zero
	}
	last := math.NaN()
	for _, index := range slices.Sorted(maps.Keys(s.buckets)) {
		n := s.buckets[index]
		if n <= 0 {
			continue
		}
		inside := min(sought/n, 1)
		last = 1000 * math.Exp2((float64(index)-1+inside)/math.Exp2(float64(s.schema)))
		if sought -= n; sought <= 0 {
			break
		}
	}
	return last
}

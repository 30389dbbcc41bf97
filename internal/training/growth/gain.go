package growth

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// What one more worker brings follows from how fast a training went with other numbers of workers. Part of its work is shared by
// all workers, and part is done by each of them, such as talking to the others. So the time that n workers together need for one
// part in a hundred of the training rises with n in a straight line, whose two constants are fitted to what was measured, by
// least squares:
//
//	n / speed(n) = a + b n              hours of workers for a percent
//	    speed(n) = n / (a + b n)        at most 1 / b, however many there are
//	     gain(n) = (speed(n+1) - speed(n)) / (speed(m) / m) = a (a + b m) / ((a + b n) (a + b (n+1)))
//
// where m is the number of workers of the core. It is Amdahl's law (Validity of the single processor approach to achieving large
// scale computing capabilities, AFIPS 1967).
//
//	speed                            ______----
//	  |                 x____----~~~~             x measured
//	  |          __--~~
//	  |      x-~            | leastGainPercent: the job stops where a worker adds less
//	  |___~________________________________ n
//	         m

const (
	// AssumedGain is the gain of a training that says nothing of its steps.
	AssumedGain = 0.9
	// assumedPower is of what n workers of a training do of which too little is known yet: n^0.938. It is the 68 % of efficiency at
	// 512 GPUs that Horovod's authors measured of VGG-16, the worst of their three models
	// (https://github.com/horovod/horovod/blob/master/docs/benchmarks.rst).
	assumedPower = 0.938
	// leastSpread is how much larger the largest measured size must be than the smallest: closer together, the noise of the
	// measurements would be all that a line through them shows.
	leastSpread = 1.25
)

// Speed is how fast a training goes with a number of workers.
type Speed struct {
	// Workers, the core included.
	Workers int32
	// PerHour is how much of the training is done in an hour, in percent.
	PerHour float64
}

// Curve is how the speed of a training follows its size. The zero value is of a training that says nothing.
type Curve struct {
	// core is the number of workers of the core; 0 for a training that says nothing.
	core float64
	// a and b are the constants of the line; 0 where too little is known.
	a, b float64
}

// FitCurve fits a curve to measured speeds of a training with so many workers in its core. It knows too little unless they are of
// sizes that differ by a quarter.
func FitCurve(core int32, speeds []Speed) Curve {
	c := Curve{core: float64(max(core, 1))}
	least, most := math.Inf(1), 0.0
	var n, sumX, sumY, sumXX, sumXY float64
	for _, s := range speeds {
		x := float64(s.Workers)
		y := x / s.PerHour
		if x < 1 || !(s.PerHour > 0) || math.IsInf(y, 0) || y == 0 {
			continue
		}
		least, most = min(least, x), max(most, x)
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	if n < 2 || most < leastSpread*least {
		return c
	}
	c.b = (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	c.a = (sumY - c.b*sumX) / n
	switch {
	case c.b < 0: // Faster than in proportion: caches, or noise.
		c.a, c.b = sumY/n, 0
	case c.a < 0: // More workers made it slower.
		c.a, c.b = 0, sumXY/sumXX
	}
	return c
}

// isKnown is true for a training of which enough was measured.
func (c Curve) isKnown() bool { return c.a+c.b > 0 }

// GainAt is what one more worker adds to the speed at a size, as a multiple of what a worker of the core adds: from 0 to 1. Where
// too little is known it falls slowly, so that trainings share room until more is; [AssumedGain] for one that says nothing.
func (c Curve) GainAt(size int32) float64 {
	n := max(float64(size), c.core)
	switch {
	case c.core == 0:
		return AssumedGain
	case !c.isKnown():
		return assumedPower * math.Pow(n/c.core, assumedPower-1)
	}
	at := c.a + c.b*n
	return c.a * (c.a + c.b*c.core) / (at * (at + c.b))
}

// ShareOf is what each of those who join adds to the speed at a size, as a multiple of what one of those who train makes there,
// from 0 to 1; 1 where too little is known.
func (c Curve) ShareOf(training, joining int32) float64 {
	if !c.isKnown() {
		return 1
	}
	return c.a / (c.a + c.b*float64(training+joining)) // (speed(n+k) / speed(n) - 1) n / k
}

// LargestWorthwhile is the largest size whose last worker gains as much: [math.MaxInt32] for no limit, and no less than the core.
func (c Curve) LargestWorthwhile(gain float64) int32 {
	if gain <= 0 || c.b == 0 {
		return math.MaxInt32
	}
	product := c.a * (c.a + c.b*c.core) / gain // of u = a + b n and u - b, for the last worker
	most := ((c.b+math.Sqrt(c.b*c.b+4*product))/2 - c.a) / c.b
	return int32(min(max(most, c.core), math.MaxInt32))
}

// CurveOf is the curve of a job with its present range.
func CurveOf(spec *v1beta1.ElasticTrainingJobSpec, st *v1beta1.ElasticTrainingJobStatus) Curve {
	if spec.Progress == nil || st.Attempt == nil {
		return Curve{}
	}
	var speeds []Speed
	if e := st.Elasticity; e != nil {
		speeds = ReadSpeeds(e.Speeds)
	}
	return FitCurve(st.Attempt.MinReplicas, speeds)
}

// ReadSpeeds reads the speeds of a status. What is no number counts as nothing measured.
func ReadSpeeds(all []v1beta1.MeasuredSpeed) []Speed {
	speeds := make([]Speed, 0, len(all))
	for i := range all {
		perHour, err := strconv.ParseFloat(all[i].PercentPerHour, 64)
		if err == nil {
			speeds = append(speeds, Speed{Workers: all[i].Workers, PerHour: perHour})
		}
	}
	return speeds
}

// KeepSpeed returns speeds with one more, by rising number of workers: it takes the place of an older one of the same size or,
// where there are too many, of the one that was measured first. The given speeds are not changed.
func KeepSpeed(all []v1beta1.MeasuredSpeed, s v1beta1.MeasuredSpeed) []v1beta1.MeasuredSpeed {
	kept := slices.DeleteFunc(slices.Clone(all), func(o v1beta1.MeasuredSpeed) bool {
		return o.Workers == s.Workers && !s.Time.Before(&o.Time)
	})
	if slices.ContainsFunc(kept, func(o v1beta1.MeasuredSpeed) bool { return o.Workers == s.Workers }) {
		return all // It is older than the one that is known.
	}
	kept = append(kept, s)
	if len(kept) > v1beta1.MaxSpeeds {
		first := slices.MinFunc(kept, func(a, b v1beta1.MeasuredSpeed) int { return a.Time.Compare(b.Time.Time) })
		kept = slices.DeleteFunc(kept, func(o v1beta1.MeasuredSpeed) bool { return o.Workers == first.Workers })
	}
	slices.SortFunc(kept, func(a, b v1beta1.MeasuredSpeed) int { return cmp.Compare(a.Workers, b.Workers) })
	return kept
}

// WorthwhileSurplus is how much surplus of so much that is wanted gains enough for the job, in whole steps.
func WorthwhileSurplus(spec *v1beta1.ElasticTrainingJobSpec, st *v1beta1.ElasticTrainingJobStatus, wanted int32) int32 {
	if st.Attempt == nil || spec.Progress == nil {
		return wanted
	}
	least := float64(ptr.Deref(spec.Elasticity.Growth.LeastGainPercent, v1beta1.DefaultLeastGainPercent)) / 100
	worth := CurveOf(spec, st).LargestWorthwhile(least) - st.Attempt.MinReplicas
	return spec.Elasticity.WholeSteps(min(wanted, max(worth, 0)))
}

package benchmark

import "math"

// MostSeeds is how many values MeanInterval takes.
const MostSeeds = 16

// studentsT are the 97.5 % quantiles of Student's t distribution by degrees of freedom, from a table: of one value there is none.
var studentsT = [MostSeeds]float64{
	0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
}

// MeanInterval returns the mean of values, one for each seed and MostSeeds at most, and half of the 95 % interval of the mean; of
// one value that half is 0.
func MeanInterval(values []float64) (middle, half float64) {
	n := float64(len(values))
	for _, v := range values {
		middle += v / n
	}
	if n < 2 {
		return middle, 0
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - middle) * (v - middle)
	}
	return middle, studentsT[len(values)-1] * math.Sqrt(squares/(n-1)/n)
}

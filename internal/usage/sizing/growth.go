package sizing

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// ahead is for how many days a cap looks ahead: to the middle of the week after which the window is another one.
	ahead = 4
	// fewestDays are those from which a trend is told.
	fewestDays = 4
	// certain is by how many standard deviations the test of Mann and Kendall must speak for growth: what does not grow is taken
	// for what does once in fifteen times.
	certain = 1.5
	// mostGrowth is the largest factor for growth.
	mostGrowth = 1.5
	// typical is the share of the time by whose processors days are compared.
	typical = 0.95
)

// Day is what a part was seen using on a day while nothing held it down: what was held down must not lower a cap, and as the
// first of a window it would turn a trend.
type Day struct {
	// Number of the day since 1970.
	Number int64
	// CPU are the millicores that sufficed 95 % of the time, and Memory is the peak, in bytes; 0 where nothing was seen.
	CPU, Memory int64
}

// dayOf is the usage of a day that began at a time.
func dayOf(at time.Time, u Usage) Day {
	enough, _ := quantile(u.CPU, nil, typical)
	return Day{Number: at.Unix() / day, CPU: int64(math.Ceil(enough * 1000)), Memory: u.MemoryPeak}
}

// amountOf is the amount of a resource.
func (d Day) amountOf(resource string) int64 {
	if resource == CPU {
		return d.CPU
	}
	return d.Memory
}

// growthFactor is the factor, from 1 to mostGrowth, by which more of a resource is likely to be needed in the days ahead than
// on the last of those given, which may come in any order, each once. The test of Mann (1945) and Kendall (1975) says whether
// there is a trend, and the slope of Theil (1950) and Sen (1968), which a day that is unlike the others does not turn, says
// which: that of all days or of their second half, whichever is less, so that a step is not taken for a slope.
func growthFactor(days []Day, resource string) float64 {
	of := func(d Day) int64 { return d.amountOf(resource) }
	days = slices.DeleteFunc(slices.Clone(days), func(d Day) bool { return of(d) <= 0 })
	n := float64(len(days))
	if n < fewestDays {
		return 1
	}
	slices.SortFunc(days, func(a, b Day) int { return cmp.Compare(a.Number, b.Number) })
	rises := 0
	for i, early := range days {
		for _, late := range days[i+1:] {
			rises += cmp.Compare(of(late), of(early))
		}
	}
	if float64(rises-1) < certain*math.Sqrt(n*(n-1)*(2*n+5)/18) {
		return 1
	}
	perDay := min(medianSlope(days, of), medianSlope(days[len(days)/2:], of))
	last := days[len(days)-1].Number
	levels := make([]float64, 0, len(days))
	for _, d := range days {
		levels = append(levels, float64(of(d))+perDay*float64(last-d.Number))
	}
	return min(max(1+ahead*perDay/median(levels), 1), mostGrowth)
}

// medianSlope is the median of those between any two days.
func medianSlope(days []Day, of func(Day) int64) float64 {
	var all []float64
	for i, early := range days {
		for _, late := range days[i+1:] {
			all = append(all, float64(of(late)-of(early))/float64(late.Number-early.Number))
		}
	}
	return median(all)
}

func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

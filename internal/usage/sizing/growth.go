package sizing

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// ahead is how many days a cap looks ahead: to the middle of the week until the window has moved on.
	ahead = 4
	// fewestDays is the least number of days for a trend.
	fewestDays = 4
	// certain is the number of standard deviations by which the test of Mann and Kendall must show growth. It is wrong once in
	// fifteen times for use that does not grow.
	certain = 1.5
	// mostGrowth is the largest factor for growth.
	mostGrowth = 1.5
	// typical is the share of the time whose need of processors stands for a day.
	typical = 0.95
)

// Day is what a part used on a day while it was below its limits. Use at a limit must not lower a cap, and on the first day
// of a window it would look like growth.
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

func (d Day) amountOf(resource string) int64 {
	if resource == CPU {
		return d.CPU
	}
	return d.Memory
}

// growthFactor is the factor, from 1 to mostGrowth, by which the need of a resource is likely to grow in the days ahead.
// The days may come in any order, each once.
//
//	growth = 1 + 4 days × slope per day ÷ median level, if the test of Mann (1945) and Kendall (1975) finds a trend
//
// The slope is that of Theil (1950) and Sen (1968), which a single unusual day does not change. It is the smaller one of
// all days and of their second half, so that a single step up does not count as steady growth.
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
	// The variance of the test statistic for n days without ties is n(n-1)(2n+5)/18; 1 is the correction for continuity.
	if float64(rises-1) < certain*math.Sqrt(n*(n-1)*(2*n+5)/18) {
		return 1
	}
	perDay := min(medianSlope(days, of), medianSlope(days[len(days)/2:], of))
	last := days[len(days)-1].Number
	// Each day is moved along the slope to the last day, so that their median is a level of today that no single day decides.
	levels := make([]float64, 0, len(days))
	for _, d := range days {
		levels = append(levels, float64(of(d))+perDay*float64(last-d.Number))
	}
	return min(max(1+ahead*perDay/median(levels), 1), mostGrowth)
}

// medianSlope is the median of the slopes between any two days.
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

package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tideline-io/tideline/internal/cost"
)

// chart is what happened day by day.
type chart struct {
	// ID is one word: of anchors, and of the picture's file.
	ID string
	// Title, and Unit of the figures, which is the label of the axis.
	Title, Unit string
	// Whole and Part are what bars and the accented part of them are; a chart without Part is a line.
	Whole, Part string
	// Alt is the chart in words.
	Alt    string
	Points []point
	// Ticks of the axis, from zero to the largest.
	Ticks []tick
}

// point is a day. Part is not more than Value.
type point struct {
	Label       string
	Value, Part float64
	// Known is whether Value is, PartKnown whether Part is.
	Known, PartKnown bool
}

type tick struct {
	Label string
	Value float64
}

// Line is whether it is a line, and not bars.
func (c chart) Line() bool { return c.Part == "" }

// dailyCharts are of days: a personal page has none.
func (v *viewer) dailyCharts() []chart {
	if len(v.report.Days) == 0 {
		return nil
	}
	used := chart{ID: "utilization", Title: "Accelerators in use", Unit: "% of the time held"}
	paid := chart{ID: "cost", Title: "Cost", Unit: v.money.code + " a day", Whole: "cost", Part: "waste"}
	free := chart{
		ID: "fragmentation", Title: "Free accelerators", Unit: "accelerators, on average", Whole: "free", Part: "of no use",
	}
	labels := dayLabels(v.report.Days)
	for i, day := range v.report.Days {
		label := labels[i]
		used.Points = append(used.Points, point{Label: label, Value: 100 * day.Utilization.Value, Known: isKnown(day.Utilization)})
		paid.Points = append(paid.Points, point{
			Label: label, Value: day.Cost.InexactFloat64(), Known: true,
			Part: min(day.Waste.InexactFloat64(), day.Cost.InexactFloat64()), PartKnown: true,
		})
		free.Points = append(free.Points, point{
			Label: label, Value: day.Free, Known: true, Part: day.Free * barWidth(day.Unusable) / 100, PartKnown: isKnown(day.Unusable),
		})
	}
	used.Ticks = axisTicks(100)
	paid.Ticks = axisTicks(highestValue(paid.Points))
	free.Ticks = axisTicks(highestValue(free.Points))
	used.Alt = inWords(v.report.Days, func(d cost.Day) string { return formatPercent(d.Utilization) })
	paid.Alt = inWords(v.report.Days, func(d cost.Day) string {
		return v.money.roundAmount(d.Cost) + ", of it waste " + v.money.roundAmount(d.Waste)
	})
	free.Alt = inWords(v.report.Days, func(d cost.Day) string {
		return strconv.FormatFloat(d.Free, 'f', 1, 64) + " free, " + formatPercent(d.Unusable) + " of them of no use"
	})
	list := []chart{used, paid}
	if v.report.Room != nil {
		list = append(list, free)
	}
	return list
}

// inWords says what a chart shows.
func inWords(days []cost.Day, say func(cost.Day) string) string {
	said := make([]string, 0, len(days))
	for _, day := range days {
		said = append(said, day.From.Format("Mon 2 Jan")+" "+say(day))
	}
	return strings.Join(said, "; ") + "."
}

// dayLabels are short names of days: of a week they are days of the week, of more their numbers.
func dayLabels(days []cost.Day) []string {
	list := make([]string, 0, len(days))
	for _, day := range days {
		layout := "Mon 2"
		if len(days) > 10 {
			layout = "2 Jan"
		}
		list = append(list, day.From.Format(layout))
	}
	return list
}

func highestValue(points []point) float64 {
	found := 0.0
	for _, p := range points {
		found = max(found, p.Value)
	}
	return found
}

// axisTicks are four or five even steps from zero to a round number that is not below the largest.
func axisTicks(largest float64) []tick {
	if largest <= 0 || math.IsNaN(largest) || math.IsInf(largest, 0) {
		largest = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(largest)))
	for _, of := range []float64{0.1, 0.2, 0.25, 0.5, 1, 2} {
		if largest <= 5*of*step {
			step *= of
			break
		}
	}
	if largest == 100 {
		step = 25
	}
	var list []tick
	for n := 0.0; n == 0 || list[len(list)-1].Value < largest; n++ {
		list = append(list, tick{shortNumber(n * step), n * step})
	}
	return list
}

// shortNumber is a number for an axis: 12,000, 1.2 M.
func shortNumber(value float64) string {
	if value >= 1e6 {
		return strconv.FormatFloat(value/1e6, 'f', -1, 64) + blank + "M"
	}
	return groupThousands(strconv.FormatFloat(math.Round(value*1e6)/1e6, 'f', -1, 64))
}

// labelStep is of how many labels one is shown, so that they do not run into each other.
func labelStep(points, room int) int { return max(1, int(math.Ceil(float64(points)/float64(room)))) }

// knownRuns are stretches of points that are known: a line has a gap where nothing is.
func knownRuns(points []point) [][2]int {
	var list [][2]int
	for i, p := range points {
		switch {
		case !p.Known:
		case i > 0 && points[i-1].Known:
			list[len(list)-1][1] = i + 1
		default:
			list = append(list, [2]int{i, i + 1})
		}
	}
	return slices.Clip(list)
}

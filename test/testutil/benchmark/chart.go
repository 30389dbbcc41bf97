package benchmark

import (
	"math"
	"slices"
	"strconv"
)

// Chart is curves over a common horizontal axis. Both axes begin at 0 or, if From is set, the horizontal one there.
type Chart struct {
	// Title says what goes up, with its unit, and Across what goes to the right.
	Title, Across string
	From          float64
	Lines         []Line
}

// Line is a curve with a name. Lines of one name look the same in all charts of a drawing.
type Line struct {
	Name string
	// Points are values: across and up.
	Points []Point
}

// Measures of charts, in pixels.
const (
	chartWidth, chartHeight = 300.0, 180.0
	chartLeft, chartTop     = 60.0, 40.0
	chartAcross, chartDown  = 400.0, 280.0
	chartLegend             = 20.0
)

// strokes are such that white and black pages both show them.
var strokes = []Stroke{
	{"#d1495b", "none"}, {"#e09f3e", "6 3"}, {"#3d85c6", "2 3"}, {"#8e6bbf", "10 3 2 3"}, {"#2a9d8f", "none"}, {"#888888", "4 4"},
}

// DrawCharts draws charts in two columns, with a legend below.
func DrawCharts(charts []Chart) string {
	var names []string
	for _, c := range charts {
		for _, l := range c.Lines {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
			}
		}
	}
	strokeOf := func(name string) Stroke { return strokes[slices.Index(names, name)%len(strokes)] }
	rows := float64((len(charts) + 1) / 2)
	d := NewDrawing(2*chartAcross, rows*chartDown+chartLegend*float64(len(names)+1))
	for i, c := range charts {
		d.chart(c, chartLeft+float64(i%2)*chartAcross, chartTop+float64(i/2)*chartDown, strokeOf)
	}
	for i, name := range names {
		d.Legend(chartLeft, rows*chartDown+chartLegend*float64(i+1), strokeOf(name), name)
	}
	return d.String()
}

func (d *Drawing) chart(c Chart, left, above float64, strokeOf func(string) Stroke) {
	across, up := c.From, 0.0
	var marks []float64
	for _, l := range c.Lines {
		for _, p := range l.Points {
			across, up = max(across, p[0]), max(up, p[1])
			marks = append(marks, p[0])
		}
	}
	up = roundUp(up)
	at := func(p Point) Point {
		return Point{left + chartWidth*(p[0]-c.From)/max(across-c.From, 1e-9), above + chartHeight*(1-p[1]/up)}
	}
	d.Text(left, above-16, "start", c.Title)
	for part := range 5 {
		value := up * float64(part) / 4
		y := at(Point{c.From, value})[1]
		d.Rule(left, y, chartWidth)
		d.Text(left-6, y+4, "end", number(value))
	}
	slices.Sort(marks)
	for _, mark := range slices.Compact(marks) {
		d.Text(at(Point{mark, 0})[0], above+chartHeight+18, "middle", number(mark))
	}
	d.Text(left+chartWidth/2, above+chartHeight+36, "middle", c.Across)
	for _, l := range c.Lines {
		var points []Point
		for _, p := range l.Points {
			points = append(points, at(p))
		}
		d.Curve(points, strokeOf(l.Name))
	}
}

// roundUp is the least number that is not below x, begins with 1, 2, 4 or 8 and then has only zeros: its quarters are short.
func roundUp(x float64) float64 {
	if x <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, first := range []float64{1, 2, 4, 8} {
		if x <= first*power {
			return first * power
		}
	}
	return 10 * power
}

// number writes four digits that count, and no needless ones.
func number(v float64) string {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		short = v
	}
	return strconv.FormatFloat(short, 'f', -1, 64)
}

package report

import (
	"math"
	"strconv"
	"strings"
)

// The plane of a chart in units of its view box, which are about pixels on a telephone: texts keep a size that can be read.
const (
	planeLeft, planeRight  = 50.0, 354.0
	planeTop, planeBottom  = 34.0, 182.0
	mostLabels             = 8
	widestBar, partOfPlace = 40.0, 0.62
)

// drawing is a chart as inline SVG, without its colours, which are the page's.
type drawing struct {
	chart
	Rules []mark
	// Labels of days have two lines.
	Labels []mark
	Bars   []rectangle
	Parts  []rectangle
	Lines  []string
	Dots   []mark
}

// mark is a place with a text.
type mark struct {
	X, Y float64
	Text string
}

type rectangle struct{ X, Y, Width, Height float64 }

// layOut gives everything in a chart its place.
func layOut(c chart) drawing {
	d := drawing{chart: c}
	top := c.Ticks[len(c.Ticks)-1].Value
	y := func(value float64) float64 {
		return roundTenth(planeBottom - (planeBottom-planeTop)*min(max(value, 0), top)/top)
	}
	place := (planeRight - planeLeft) / float64(len(c.Points))
	x := func(i int) float64 { return roundTenth(planeLeft + place*(float64(i)+0.5)) }
	for _, t := range c.Ticks {
		d.Rules = append(d.Rules, mark{planeLeft, y(t.Value), t.Label})
	}
	wide := roundTenth(min(widestBar, place*partOfPlace))
	box := func(i int, value float64) rectangle {
		return rectangle{roundTenth(x(i) - wide/2), y(value), wide, roundTenth(planeBottom - y(value))}
	}
	step := labelStep(len(c.Points), mostLabels)
	for i, p := range c.Points {
		if i%step == 0 {
			first, second, _ := strings.Cut(p.Label, " ")
			d.Labels = append(d.Labels, mark{x(i), planeBottom + 16, first}, mark{x(i), planeBottom + 30, second})
		}
		switch {
		case !p.Known:
			d.Dots = append(d.Dots, mark{x(i), planeBottom, "?"})
		case c.Line():
			d.Dots = append(d.Dots, mark{X: x(i), Y: y(p.Value)})
		default:
			d.Bars = append(d.Bars, box(i, p.Value))
			if p.PartKnown {
				d.Parts = append(d.Parts, box(i, p.Part))
			}
		}
	}
	if !c.Line() {
		return d
	}
	for _, run := range knownRuns(c.Points) {
		var points []string
		for i := run[0]; i < run[1]; i++ {
			points = append(points, formatFloat(x(i))+","+formatFloat(y(c.Points[i].Value)))
		}
		d.Lines = append(d.Lines, strings.Join(points, " "))
	}
	return d
}

func roundTenth(v float64) float64 { return math.Round(v*10) / 10 }

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

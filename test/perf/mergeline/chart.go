package main

import (
	"fmt"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// Measures of the drawing, in pixels.
const (
	panelWidth, panelHeight = 420.0, 240.0
	left, above             = 48.0, 40.0
	topLate                 = 60.0
)

// strokes are those of the subjects.
var strokes = []benchmark.Stroke{
	{Colour: "#d1495b", Dashes: "6 3"},
	{Colour: "#e09f3e", Dashes: "2 3"},
	{Colour: "#3d85c6", Dashes: "10 3 2 3"},
	{Colour: "#7b5ea7", Dashes: "4 2"},
	{Colour: "#2a9d8f", Dashes: "none"},
}

// drawing draws how many models are late, over the size of the pool.
func drawing(results []result) string {
	d := benchmark.NewDrawing(left+panelWidth+40, above+panelHeight+50+18*float64(len(subjects)))
	d.Text(left, above-14, "start", "Models late, of 60, by the size of the pool ÷ the bound")
	for y := 0.0; y <= topLate; y += 20 {
		d.Grid(left, rise(y), panelWidth, y)
	}
	for s := range subjects {
		var points []benchmark.Point
		for c, with := range conditions {
			if with.times == 0 {
				continue
			}
			middle, _ := benchmark.MeanInterval(values(choose(results, c, s), func(s summary) float64 { return s.late }))
			points = append(points, benchmark.Point{across(with.times), rise(middle)})
			if s == 0 {
				d.Text(across(with.times), above+panelHeight+16, "middle", fmt.Sprint(with.times))
			}
		}
		y := above + panelHeight + 44 + 18*float64(s)
		d.Curve(points, strokes[s])
		d.Legend(left, y, strokes[s], subjects[s].name)
	}
	return d.String()
}

// across is where a size of the pool stands on the horizontal axis.
func across(times float64) float64 { return left + panelWidth*(times-1)/1.1 }

// rise is where a number of models stands on the vertical axis.
func rise(models float64) float64 { return above + panelHeight*(1-models/topLate) }

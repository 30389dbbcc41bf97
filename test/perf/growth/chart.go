package main

import (
	"math"

	"github.com/tideline-io/tideline/test/testutil/benchmark"
)

// Measures of the drawing, in pixels.
const (
	panelWidth, panelHeight = 260.0, 220.0
	left, above, between    = 40.0, 40.0, 46.0
	topDevices              = 48.0
)

// strokes are those of the subjects.
var strokes = []benchmark.Stroke{
	{Colour: "#888888", Dashes: "1 3"},
	{Colour: "#d1495b", Dashes: "6 3"},
	{Colour: "#e09f3e", Dashes: "2 3"},
	{Colour: "#3d85c6", Dashes: "10 3 2 3"},
	{Colour: "#2a9d8f", Dashes: "none"},
}

// drawing draws a panel for each outage: devices that trained, over the time between two changes.
func drawing(results []result) string {
	width := left + float64(len(outages))*(panelWidth+between)
	height := above + panelHeight + 40 + 18*float64(len(subjects))
	d := benchmark.NewDrawing(width, height)
	for i, outage := range outages {
		x := left + float64(i)*(panelWidth+between)
		d.Text(x, above-14, "start", "Devices that train, restarts of "+sayTime(outage))
		for y := 0.0; y <= topDevices; y += 16 {
			d.Grid(x, rise(y), panelWidth, y)
		}
		for j, every := range changeEvery {
			d.Text(x+across(j), above+panelHeight+16, "middle", sayTime(every))
		}
		for s := range subjects {
			var points []benchmark.Point
			for j, every := range changeEvery {
				points = append(points, benchmark.Point{x + across(j), rise(mean(pick(results, outage, every, s), goodDevices))})
			}
			d.Curve(points, strokes[s])
		}
	}
	for s := range subjects {
		y := above + panelHeight + 40 + 18*float64(s)
		d.Legend(left, y, strokes[s], subjects[s].name)
	}
	return d.String()
}

// across is where a time between two changes stands on the horizontal axis, which is logarithmic.
func across(of int) float64 {
	first, last := changeEvery[0].Seconds(), changeEvery[len(changeEvery)-1].Seconds()
	return panelWidth * math.Log(changeEvery[of].Seconds()/first) / math.Log(last/first)
}

// rise is where a number of devices stands on the vertical axis.
func rise(devices float64) float64 { return above + panelHeight*(1-devices/topDevices) }

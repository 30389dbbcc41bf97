package main

import (
	"fmt"
	"math"
	"strings"
)

// Measures of the drawing, in pixels. Dashes tell lines apart where colours do not.
const (
	panelWidth, panelHeight = 260.0, 220.0
	left, above, between    = 40.0, 40.0, 46.0
	topDevices              = 48.0
)

var (
	colours = []string{"#888888", "#d1495b", "#e09f3e", "#3d85c6", "#2a9d8f"}
	dashes  = []string{"1 3", "6 3", "2 3", "10 3 2 3", "none"}
)

// drawing draws a panel for each outage: devices that trained, over the time between two changes.
func drawing(results []result) string {
	var b strings.Builder
	width := left + float64(len(outages))*(panelWidth+between)
	height := above + panelHeight + 40 + 18*float64(len(subjects))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+"\n",
		width, height)
	for i, outage := range outages {
		x := left + float64(i)*(panelWidth+between)
		text(&b, x, above-14, "start", "Devices that train, restarts of "+sayTime(outage))
		for y := 0.0; y <= topDevices; y += 16 {
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#888888" stroke-opacity="0.4"/>`+"\n", x, x+panelWidth,
				rise(y), rise(y))
			text(&b, x-6, rise(y)+4, "end", fmt.Sprintf("%.0f", y))
		}
		for j, every := range changeEvery {
			text(&b, x+across(j), above+panelHeight+16, "middle", sayTime(every))
		}
		for s := range subjects {
			var points []string
			for j, every := range changeEvery {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x+across(j), rise(mean(pick(results, outage, every, s), goodDevices))))
			}
			fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n",
				strings.Join(points, " "), colours[s], dashes[s])
		}
	}
	for s := range subjects {
		y := above + panelHeight + 40 + 18*float64(s)
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", left,
			left+40, y-4, y-4, colours[s], dashes[s])
		text(&b, left+48, y, "start", subjects[s].name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func text(b *strings.Builder, x, y float64, anchor, words string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#888888">%s</text>`+"\n", x, y, anchor, words)
}

// across is where a time between two changes stands on the horizontal axis, which is logarithmic.
func across(of int) float64 {
	first, last := changeEvery[0].Seconds(), changeEvery[len(changeEvery)-1].Seconds()
	return panelWidth * math.Log(changeEvery[of].Seconds()/first) / math.Log(last/first)
}

// rise is where a number of devices stands on the vertical axis.
func rise(devices float64) float64 { return above + panelHeight*(1-devices/topDevices) }

package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// A line of a chart.
type line struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// A panel is one chart: lines over a common horizontal axis.
type panel struct {
	title string
	top   float64 // end of the vertical axis, which begins at 0
	lines []line
}

// Measures of the drawing, in pixels. Colours are such that white and black pages both show them; colours and dashes tell lines
// apart also where one of them does not.
const (
	panelWidth, panelHeight = 400.0, 240.0
	marginLeft, marginTop   = 52.0, 34.0
	between                 = 70.0
	legendRow               = 20.0
	grey                    = "#888888"
)

var (
	colours = []string{"#d1495b", "#e09f3e", "#3d85c6", "#8e6bbf", "#2a9d8f"}
	dashes  = []string{"none", "6 3", "2 3", "10 3 2 3", "none"}
)

// dotted is how the bound is drawn.
const dotted = `stroke="` + grey + `" stroke-dasharray="1 3" stroke-width="2"`

// panels are what the page shows of the results.
func panels(e experiment, results []result) []panel {
	late := panel{title: "models late, of " + strconv.Itoa(e.models), top: float64(e.models)}
	held := panel{title: "machine-hours held and not worked"}
	for _, of := range byStrategy(results) {
		a, b := line{name: of[0].strategy.title}, line{name: of[0].strategy.title}
		for _, r := range of {
			a.points = append(a.points, point{float64(r.pool), float64(r.late)})
			b.points = append(b.points, point{float64(r.pool), r.held - r.worked})
			held.top = max(held.top, r.held-r.worked)
		}
		late.lines, held.lines = append(late.lines, a), append(held.lines, b)
	}
	held.top = roundUp(held.top)
	return []panel{late, held}
}

// roundUp returns the next number with one digit that is not 0, and at least 1.
func roundUp(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(x, 1))))
	return math.Ceil(max(x, 1)/power) * power
}

// chart draws panels side by side over the machines of a pool, with a mark at the bound, as SVG.
func chart(bound float64, panels []panel) string {
	width := marginLeft + float64(len(panels))*(panelWidth+between)
	height := marginTop + panelHeight + 52 + legendRow*float64(len(panels[0].lines)+1)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f"`+
		` font-family="sans-serif" font-size="13" fill="%s">`+"\n<title>Merges in pools of so many machines</title>\n",
		width, height, grey)
	for i, p := range panels {
		drawPanel(&b, marginLeft+float64(i)*(panelWidth+between), bound, p)
	}
	y := marginTop + panelHeight + 62
	for i, l := range panels[0].lines {
		row := y + legendRow*float64(i)
		fmt.Fprintf(&b, `<path d="M%.0f %.1fh40" %s/><text x="%.0f" y="%.1f">%s</text>`+"\n",
			marginLeft, row-4, stroke(i), marginLeft+50, row, html.EscapeString(l.name))
	}
	row := y + legendRow*float64(len(panels[0].lines))
	fmt.Fprintf(&b, `<path d="M%.0f %.1fh40" %s/><text x="%.0f" y="%.1f">work divided by time: %.0f machines</text>`+"\n</svg>\n",
		marginLeft, row-4, dotted, marginLeft+50, row, bound)
	return b.String()
}

func drawPanel(b *strings.Builder, left, bound float64, p panel) {
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, l := range p.lines {
		for _, q := range l.points {
			lowest, highest = min(lowest, q.x), max(highest, q.x)
		}
	}
	span := max(highest-lowest, 1)
	x := func(v float64) float64 { return left + (v-lowest)/span*panelWidth }
	y := func(v float64) float64 { return marginTop + (1-v/p.top)*panelHeight }
	fmt.Fprintf(b, `<text x="%.0f" y="18" font-weight="bold">%s</text>`+"\n", left, html.EscapeString(p.title))
	for i := range 5 {
		v := p.top * float64(i) / 4
		fmt.Fprintf(b, `<path d="M%.1f %.1fh%.0f" stroke="%s" stroke-opacity="0.35"/>`+
			`<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", left, y(v), panelWidth, grey, left-6, y(v)+4, number(v))
	}
	for _, q := range p.lines[0].points {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x(q.x), y(0)+18, number(q.x))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">machines of the pool</text>`+"\n", left+panelWidth/2, y(0)+38)
	if bound >= lowest && bound <= highest {
		fmt.Fprintf(b, `<path d="M%.1f %.1fv%.0f" %s/>`+"\n", x(bound), marginTop, panelHeight, dotted)
	}
	for i, l := range p.lines {
		var path strings.Builder
		for j, q := range l.points {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(j, 1)], x(q.x), y(q.y))
		}
		fmt.Fprintf(b, `<path d="%s" %s/>`+"\n", path.String(), stroke(i))
	}
}

// stroke is how the i-th line is drawn.
func stroke(i int) string {
	i %= len(colours)
	return fmt.Sprintf(`fill="none" stroke=%q stroke-width="2.5" stroke-dasharray=%q`, colours[i], dashes[i])
}

// number writes without needless digits.
func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

package report

import (
	"bytes"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Pictures are drawn for a light ground, which they bring with them: mail programs that prefer dark do not know what is in a
// picture.
var (
	ground = color.White
	ink    = color.RGBA{0x52, 0x61, 0x6f, 0xff}
	rule   = color.RGBA{0xdd, 0xe5, 0xe8, 0xff}
	muted  = color.RGBA{0x7a, 0x8a, 0x98, 0xff}
	accent = color.RGBA{0x0b, 0x70, 0x69, 0xff}
)

// Size of a picture, at twice the pixels that it is shown with, for dense screens.
const (
	pictureWidth, pictureHeight = 360 * vg.Inch / 96, 234 * vg.Inch / 96
	pictureDensity              = 192
)

// drawPNG draws a chart as PNG.
func drawPNG(c chart) ([]byte, error) {
	p := plot.New()
	p.BackgroundColor = ground
	for _, text := range []*draw.TextStyle{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label,
	} {
		text.Font, text.Color = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 8}, ink
	}
	p.Title.Text, p.X.Label.Text = c.Unit, "day"
	if !c.Line() {
		p.Title.Text += ": grey " + c.Whole + ", green " + c.Part
	}
	p.X.LineStyle.Width, p.Y.LineStyle.Width, p.X.Tick.LineStyle.Width, p.Y.Tick.LineStyle.Width = 0, 0, 0, 0
	p.X.Tick.Marker, p.Y.Tick.Marker = placesOfDays(c), placesOfTicks(c)
	grid := plotter.NewGrid()
	grid.Vertical.Width, grid.Horizontal.Color = 0, rule
	p.Add(grid)
	add := drawBars
	if c.Line() {
		add = drawLines
	}
	if err := add(p, c); err != nil {
		return nil, err
	}
	// After what is drawn, which would widen it.
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.6, float64(len(c.Points))-0.4, 0, c.Ticks[len(c.Ticks)-1].Value
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(pictureWidth, pictureHeight), vgimg.UseDPI(pictureDensity))}
	p.Draw(draw.Crop(draw.New(canvas), 4, -8, 4, -4))
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	return b.Bytes(), err
}

func placesOfDays(c chart) plot.ConstantTicks {
	var list plot.ConstantTicks
	for i, point := range c.Points {
		if i%labelStep(len(c.Points), mostLabels) == 0 {
			list = append(list, plot.Tick{Value: float64(i), Label: strings.Replace(point.Label, " ", "\n", 1)})
		}
	}
	return list
}

func placesOfTicks(c chart) plot.ConstantTicks {
	var list plot.ConstantTicks
	for _, t := range c.Ticks {
		list = append(list, plot.Tick{Value: t.Value, Label: t.Label})
	}
	return list
}

// drawBars draws the whole of each day, and before it its part.
func drawBars(p *plot.Plot, c chart) error {
	var whole, part plotter.Values
	for _, point := range c.Points {
		whole, part = append(whole, point.Value), append(part, point.Part)
	}
	wide := min(vg.Points(24), pictureWidth*partOfPlace*0.85/vg.Length(max(1, len(c.Points))))
	for _, layer := range []struct {
		values plotter.Values
		color  color.Color
	}{{whole, muted}, {part, accent}} {
		chart, err := plotter.NewBarChart(layer.values, wide)
		if err != nil {
			return err
		}
		chart.Color, chart.LineStyle.Width = layer.color, 0
		p.Add(chart)
	}
	return nil
}

// drawLines draws a line with a gap where nothing is known.
func drawLines(p *plot.Plot, c chart) error {
	for _, run := range knownRuns(c.Points) {
		var points plotter.XYs
		for i := run[0]; i < run[1]; i++ {
			points = append(points, plotter.XY{X: float64(i), Y: c.Points[i].Value})
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, line.Width = accent, vg.Points(2)
		dots.Color, dots.Shape, dots.Radius = accent, draw.CircleGlyph{}, vg.Points(2.5)
		p.Add(line, dots)
	}
	return nil
}

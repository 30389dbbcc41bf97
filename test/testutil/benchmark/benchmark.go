// Package benchmark is what programs share that compare subjects and write a page about it.
package benchmark

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// RunAll does all runs, on all cores, and tells after each how many are done. It returns the first error.
func RunAll(all int, do func(run int) error, tell func(done, all int)) error {
	var next, done atomic.Int64
	var workers errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= all {
					return nil
				}
				if err := do(i); err != nil {
					return err
				}
				tell(int(done.Add(1)), all)
			}
		})
	}
	return workers.Wait()
}

// WriteResults writes results between the marks of a command on a page, and files into the page's folder. Results that it could
// not write it prints: they may have taken hours.
func WriteResults(page, command, results string, files map[string]string) (err error) {
	defer func() {
		if err != nil {
			fmt.Println(results)
		}
	}()
	before, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	after, err := markdown.ReplaceMarked(string(before), command, results)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(filepath.Dir(page), name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(page, []byte(after), 0o600)
}

// Drawing is an SVG that is being drawn, in pixels.
type Drawing struct{ b strings.Builder }

// Stroke is how a line looks. Dashes tell lines apart where colours do not.
type Stroke struct{ Colour, Dashes string }

// NewDrawing begins a drawing.
func NewDrawing(width, height float64) *Drawing {
	d := &Drawing{}
	fmt.Fprintf(&d.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" `+
		`font-size="12">`+"\n", width, height)
	return d
}

// Text writes words whose start, middle or end is at a point.
func (d *Drawing) Text(x, y float64, anchor, words string) {
	fmt.Fprintf(&d.b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#888888">%s</text>`+"\n", x, y, anchor, words)
}

// Rule draws a thin horizontal line from a point.
func (d *Drawing) Rule(x, y, width float64) {
	fmt.Fprintf(&d.b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#888888" stroke-opacity="0.4"/>`+"\n", x, x+width, y, y)
}

// Grid draws a horizontal line of a panel, with its value on the left.
func (d *Drawing) Grid(x, y, width, value float64) {
	d.Rule(x, y, width)
	d.Text(x-6, y+4, "end", fmt.Sprintf("%.0f", value))
}

// Point is where a curve goes: across and down.
type Point [2]float64

// Curve draws lines from point to point.
func (d *Drawing) Curve(points []Point, as Stroke) {
	var at []string
	for _, p := range points {
		at = append(at, fmt.Sprintf("%.1f,%.1f", p[0], p[1]))
	}
	fmt.Fprintf(&d.b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n",
		strings.Join(at, " "), as.Colour, as.Dashes)
}

// Legend names a curve.
func (d *Drawing) Legend(x, y float64, as Stroke, name string) {
	fmt.Fprintf(&d.b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n",
		x, x+40, y-4, y-4, as.Colour, as.Dashes)
	d.Text(x+48, y, "start", name)
}

// String ends the drawing.
func (d *Drawing) String() string { return d.b.String() + "</svg>\n" }

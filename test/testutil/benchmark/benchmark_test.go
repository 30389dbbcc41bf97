package benchmark

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

func TestEachRunIsDoneOnce(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	done := map[int]int{}
	g.Expect(RunAll(50, func(run int) error {
		mu.Lock()
		defer mu.Unlock()
		done[run]++
		return nil
	}, func(int, int) {})).To(Succeed())
	g.Expect(done).To(HaveLen(50))
	g.Expect(done).To(HaveEach(1))
	g.Expect(RunAll(50, func(run int) error {
		if run == 7 {
			return errors.New("no")
		}
		return nil
	}, func(int, int) {})).To(MatchError("no"))
}

func TestResultsStandBetweenTheirMarks(t *testing.T) {
	g := NewWithT(t)
	page := filepath.Join(t.TempDir(), "page.md")
	const marked = "# Page\n\n<!-- begin: make x -->\n\nold\n\n<!-- end: make x -->\n"
	g.Expect(os.WriteFile(page, []byte(marked), 0o600)).To(Succeed())
	g.Expect(WriteResults(page, "make x", "new\n", map[string]string{"x.svg": NewDrawing(1, 2).String()})).To(Succeed())
	g.Expect(os.ReadFile(page)).To(And(ContainSubstring("new"), Not(ContainSubstring("old"))))
	g.Expect(os.ReadFile(filepath.Join(filepath.Dir(page), "x.svg"))).To(ContainSubstring(`viewBox="0 0 1 2"`))
	g.Expect(WriteResults(page, "make y", "new", nil)).NotTo(Succeed(), "the page has no such marks")
}

func TestIntervalsOfMeans(t *testing.T) {
	g := NewWithT(t)
	for values, want := range map[[3]float64][2]float64{
		{1, 1, 1}: {1, 0}, {1, 2, 3}: {2, 2.484}, // 4.303 times the deviation of 1 over the root of 3
	} {
		middle, half := MeanInterval(values[:])
		g.Expect([]float64{middle, half}).To(HaveExactElements(
			BeNumerically("~", want[0], 1e-9), BeNumerically("~", want[1], 1e-3)))
	}
	middle, half := MeanInterval([]float64{3})
	g.Expect([]float64{middle, half}).To(Equal([]float64{3, 0}))
	most := make([]float64, MostSeeds)
	most[0] = 1
	_, half = MeanInterval(most)
	g.Expect(half).To(BeNumerically(">", 0), "the table is long enough")
}

func TestChartsHaveTheirScalesAndLines(t *testing.T) {
	g := NewWithT(t)
	for value, top := range map[float64]float64{0: 1, 3: 4, 0.05: 0.08, 8.1: 10, 2000: 2000} {
		g.Expect(roundUp(value)).To(Equal(top))
	}
	svg := DrawCharts([]Chart{
		{Title: "up", Across: "right", From: 0.5, Lines: []Line{{"a", []Point{{0.5, 10}, {1, 40}}}, {"b", []Point{{0.5, 20}}}}},
		{Title: "other", Across: "right", Lines: []Line{{"b", []Point{{0, 0}, {2, 1}}}}},
	})
	g.Expect(svg).To(ContainSubstring(`points="60.0,175.0 360.0,40.0"`), "from a quarter of the height to the top")
	g.Expect(svg).To(ContainSubstring(`points="460.0,220.0 760.0,40.0"`), "the second chart stands beside the first")
	g.Expect(strings.Count(svg, ">b</text>")).To(Equal(1), "a name is in the legend once")
}

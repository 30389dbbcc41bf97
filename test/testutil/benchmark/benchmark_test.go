package benchmark

import (
	"errors"
	"os"
	"path/filepath"
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

package training

import (
	"testing"

	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

// BenchmarkPlan is the decision for a job of 1,000 workers at rest.
func BenchmarkPlan(b *testing.B) {
	w := newSimulator(&testing.T{}, 100, 1000).trains()
	b.ReportAllocs()
	for b.Loop() {
		if d := Plan(w.o, w.now); PaceOf(&w.o.Job.Status, &d.Status) != statuspace.Never {
			b.Fatal("is not at rest")
		}
	}
}

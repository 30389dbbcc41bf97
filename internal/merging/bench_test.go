package merging

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkPlan decides about a pool of 100 merges that are not due.
func BenchmarkPlan(b *testing.B) {
	w := newSimulator(&testing.T{}, 4)
	for i := range 100 {
		w.add(fmt.Sprintf("m%03d", i)).full(w, time.Hour)
	}
	w.settle()
	o := w.observed()
	for b.Loop() {
		d := Plan(o, w.now)
		for i := range d.Jobs {
			if PaceOf(&d.Jobs[i].Job.Object.Status, &d.Jobs[i].Status) > 0 {
				b.Fatal("a merge at rest is written")
			}
		}
	}
}

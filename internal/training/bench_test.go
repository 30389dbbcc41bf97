package training

import (
	"fmt"
	"testing"

	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

// sizes are how many workers the measured jobs have. The largest is as many as a job may have.
var sizes = []int32{64, 512, 1024, 4096}

// BenchmarkPlan is the decision for a job at rest, and for one half of whose workers have started.
func BenchmarkPlan(b *testing.B) {
	for _, size := range sizes {
		w := newSimulator(&testing.T{}, size/8, size).trains()
		b.Run(fmt.Sprintf("rests/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := Plan(w.o, w.now); PaceOf(&w.o.Job.Status, &d.Status) != statuspace.Never {
					b.Fatal("is not at rest")
				}
			}
		})
		w = halfStarted(size)
		b.Run(fmt.Sprintf("starts/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Plan(w.o, w.now)
			}
		})
	}
}

// halfStarted is a job whose workers are all core, and one half of them run.
func halfStarted(size int32) *simulator {
	w := newSimulator(&testing.T{}, size, size).settle()
	half := make([]int32, size/2)
	for i := range half {
		half[i] = int32(i)
	}
	return w.run(half...)
}

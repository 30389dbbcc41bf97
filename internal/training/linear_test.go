package training

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/describe"
)

// moments are what may happen to all workers of a job at once.
var moments = []struct {
	name string
	at   func(size int32) *simulator
}{
	{"rests", largeJob},
	{"half have started", halfStarted},
	{"surplus is told to leave", func(size int32) *simulator {
		w := largeJob(size)
		for i := range w.o.Workers {
			w.o.Verdict.GiveUp = append(w.o.Verdict.GiveUp, w.o.Workers[i].UID)
		}
		return w
	}},
	{"surplus has left", func(size int32) *simulator {
		return largeJob(size).loseAll(corev1.PodReasonPreemptionByScheduler, size/8)
	}},
	{"surplus returns", func(size int32) *simulator {
		w := largeJob(size).loseAll(corev1.PodReasonPreemptionByScheduler, size/8).settle().pass(time.Hour).settle()
		return w.run()
	}},
	{"all are lost", func(size int32) *simulator { return largeJob(size).loseAll("", 0) }},
	{"all have failed", func(size int32) *simulator {
		return largeJob(size).each(func(p *podstate.Worker) {
			p.Phase, p.Ready, p.Failure = corev1.PodFailed, false, podstate.Failure{ExitCode: 1, Reason: "Error"}
		})
	}},
	{"all have succeeded but worker 0", func(size int32) *simulator {
		return largeJob(size).each(func(p *podstate.Worker) {
			if p.Index > 0 {
				p.Phase, p.Ready, p.FinishedAt = corev1.PodSucceeded, false, metav1.Time{}
			}
		})
	}},
	{"all restart in place", func(size int32) *simulator {
		return largeJob(size).each(func(p *podstate.Worker) { p.ContainerRestarts++ })
	}},
	{"another attempt begins", func(size int32) *simulator {
		w := largeJob(size)
		w.status().Attempt.Number++
		return w.each(func(p *podstate.Worker) { p.Terminating = true })
	}},
	{"fewer are wanted", func(size int32) *simulator { return largeJob(size).scale(size / 8) }},
	{"is stopped", func(size int32) *simulator {
		w := largeJob(size)
		w.o.Job.Spec.Suspend = true
		return w
	}},
}

// largeJob is a job at rest, with seven eighths of its workers in its surplus.
func largeJob(size int32) *simulator { return newSimulator(&testing.T{}, size/8, size).trains() }

func (w *simulator) each(change func(*podstate.Worker)) *simulator {
	for i := range w.o.Workers {
		change(&w.o.Workers[i])
	}
	return w
}

// loseAll takes away the workers from an index on, for the reason of their condition.
func (w *simulator) loseAll(disruption string, from int32) *simulator {
	var stay []podstate.Worker
	for _, p := range w.o.Workers {
		if p.Index < from {
			stay = append(stay, p)
			continue
		}
		p.Disruption = disruption
		w.o.Departures = append(w.o.Departures, p.AsDeparture(false))
	}
	w.o.Workers = stay
	return w
}

// A job has up to 4,096 workers, and what befalls one may befall all.
func TestDecisionsCostInProportionToTheWorkers(t *testing.T) {
	const small, large = 512, 4096
	for _, m := range moments {
		t.Run(m.name, func(t *testing.T) {
			few, many := m.at(small), m.at(large)
			// Linear work takes 8 times as long, or more where it no longer fits into the processor's caches, and quadratic work 64 times.
			const most = 3 * large / small
			ratio := 0.0
			for range 6 { // Others use the machine too, so the best of a few.
				ratio = many.quickest().Seconds() / few.quickest().Seconds()
				if ratio < most {
					return
				}
			}
			NewWithT(t).Expect(ratio).To(BeNumerically("<", most), fmt.Sprintf("%d workers against %d", large, small))
		})
	}
}

// quickest is the least that processors work of several times that the job is decided on and the change is told.
func (w *simulator) quickest() time.Duration {
	best := time.Hour
	for range 7 {
		began := cpuTime()
		d := Plan(w.o, w.now)
		PaceOf(w.status(), &d.Status)
		describe.EventsBetween(&w.o.Job.Spec, w.status(), &d.Status)
		describe.MeasureChange(w.status(), &d.Status, d.Losses)
		best = min(best, cpuTime()-began)
	}
	return best
}

// cpuTime is what the process has used of processors: the time that passes is also that of whoever else uses the machine.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

// measure hands out that a change of size kept the training from progress, until a status is written.
func (w *simulator) measure(outage time.Duration) *simulator {
	w.o.MeasuredOutage, w.o.Measurements = outage, w.o.Measurements+1
	return w
}

func (w *simulator) outage() int32 {
	if e := w.status().Elasticity; e != nil {
		return e.OutageSeconds
	}
	return 0
}

func TestOutagesAreWrittenSmoothed(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	g.Expect(w.outage()).To(BeZero())
	w.measure(40 * time.Second).settle()
	g.Expect(w.outage()).To(Equal(int32(40)), "the first as it is")
	w.settle().pass(time.Hour).settle()
	g.Expect(w.outage()).To(Equal(int32(40)), "it is joined with what is known once")
	w.measure(140 * time.Second).settle()
	g.Expect(w.outage()).To(Equal(int32(70)), "a later one counts for three tenths")
	w.measure(time.Millisecond).settle().measure(time.Millisecond).settle()
	g.Expect(w.outage()).To(Equal(int32(34)))
	for range 100 {
		w.measure(time.Millisecond).settle()
	}
	g.Expect(w.outage()).To(Equal(int32(1)), "never none")
}

func TestAnOutageIsWrittenAlthoughTheJobStopsOrEnds(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains().evict(3).settle().suspend(true).measure(40 * time.Second).settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseSuspended))
	g.Expect(w.status().Elasticity).To(HaveValue(Equal(v1beta1.ElasticityStatus{OutageSeconds: 40})), "and nothing else")
	w.suspend(false).settle().run().settle()
	g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseRunning))
	g.Expect(w.outage()).To(Equal(int32(40)), "the next attempt knows it")

	ended := newSimulator(t, 2, 4).trains().succeed(0, 1, 2, 3).measure(50 * time.Second).settle()
	g.Expect(ended.status().Phase).To(Equal(v1beta1.PhaseSucceeded))
	g.Expect(ended.outage()).To(Equal(int32(50)))
	g.Expect(newSimulator(t, 2, 4).trains().evict(3).settle().succeed(0, 1, 2).settle().status().Elasticity).To(BeNil())
}

func TestAnOutageIsOneWriteThatMayWait(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	before := w.status().DeepCopy()
	w.o.MeasuredOutage = 40 * time.Second
	d := Plan(w.o, w.now)
	g.Expect(PaceOf(before, &d.Status)).To(Equal(statuspace.Calm))
	g.Expect(d.Status.Elasticity.OutageSeconds).To(Equal(int32(40)))
	again := Plan(w.o, w.now.Add(time.Minute))
	g.Expect(again.Status.Elasticity.OutageSeconds).To(Equal(int32(40)), "the same until it is written")
}

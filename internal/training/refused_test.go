package training

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestAJobWhoseWorkersAreRefusedHoldsNoPlaceInTheQueue(t *testing.T) {
	g := NewWithT(t)
	const words = "Cannot create pod ctr-worker-0: violates PodSecurity."
	w := newSimulator(t, 2, 4)
	w.refuses = words
	w.settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonRejected))
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("True/Rejected"))
	g.Expect(w.status().Message).To(Equal(words))
	g.Expect(w.o.Core).To(BeNil(), "no gang waits for ever")
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{0}), "one worker alone is tried again")
	written, changes := w.written, w.changes
	w.step().step()
	g.Expect([]int{w.written, w.changes}).To(Equal([]int{written, changes}), "and nothing is written meanwhile")

	w.refuses = ""
	w.trains()
	g.Expect(w.indices()).To(Equal([]int32{0, 1, 2, 3}), "it goes on by itself")
	g.Expect(condition(w, v1beta1.ConditionStalled)).To(Equal("absent"))
}

func TestAGangOfAnEarlierAttemptGoesToo(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4).trains()
	w.refuses = "Cannot create pod."
	for i := range int32(4) {
		w.deletePod(i)
	}
	w.settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonRejected))
	g.Expect([]bool{w.o.Core == nil, w.o.Surplus == nil}).To(Equal([]bool{true, true}))
	w.refuses = ""
	g.Expect(w.trains().status().Phase).To(Equal(v1beta1.PhaseRunning))
}

func TestWorkersThatAreThereKeepTheirGang(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 2).trains()
	w.refuses = "Cannot create pod."
	w.deletePod(1).settle()
	g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonRejected))
	g.Expect(w.o.Core).NotTo(BeNil(), "worker 0 still holds its place")
	g.Expect(w.last.CreateWorkers).To(Equal([]int32{1}))
}

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestRivalsKeepAllMergesGoing(t *testing.T) {
	g := NewWithT(t)
	w := drawWorkload(1)
	for _, s := range subjects[:plainLine] {
		r, err := s.play(w, w.pool(1.3))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.deadlocks).To(BeZero(), s.name)
		g.Expect(len(r.ages)).To(BeNumerically(">", 500), s.name)
	}
	g.Expect(anyFIFO.play(w, w.pool(1.3)).idle).To(BeZero(), "it places whatever fits")
}

func TestWorkloadIsTheSameForAll(t *testing.T) {
	g := NewWithT(t)
	g.Expect(drawWorkload(3)).To(Equal(drawWorkload(3)))
	w := drawWorkload(3)
	g.Expect(w.duration(5, 7)).To(Equal(w.duration(5, 7)))
	g.Expect(w.duration(5, 7)).NotTo(Equal(w.duration(5, 8)))
}

// All tiers of the workload must be able to run: figures of a line in which some never do would mean nothing.
func TestEveryModelOfTheLineIsMerged(t *testing.T) {
	w := twoLarge(1)
	for i := range w.models {
		w.models[i].tier = []string{"exploratory", "small-traffic", "main-traffic"}[i%3]
	}
	r, err := policy{}.play(w, w.pool(0))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(r.deadlocks).To(BeZero())
}

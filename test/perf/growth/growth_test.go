package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// The aims, on seeds of their own, for restarts that are dear enough to tell the ways apart.
func TestGrowthThatPaysIsNoWorseThanTheBestOfTheOthers(t *testing.T) {
	for _, outage := range []time.Duration{15 * time.Second, time.Minute, 3 * time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			good := func(subject int) float64 { return run(subjects[subject], 7, 8*time.Minute, outage).Good }
			pays := good(onlyIfPays)
			g.Expect(pays).To(BeNumerically(">", 0.98*good(greedy)))
			g.Expect(pays).To(BeNumerically(">", good(fixed)))
		})
	}
}

func TestNoDeviceIsHeldTwice(t *testing.T) {
	g := NewWithT(t)
	o := run(subjects[greedy], 3, 8*time.Minute, time.Minute)
	g.Expect(o.Held / horizon(8*time.Minute).Seconds()).To(BeNumerically("<", nodes*devicesPerNode))
	g.Expect(o.Good).To(BeNumerically("<", o.Held))
	g.Expect(o.Changes).To(BeNumerically(">", 0))
}

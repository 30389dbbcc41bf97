package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// play runs a subject with rooms that change every 8 minutes.
func play(g *WithT, subject int, seed uint64, outage time.Duration) outcome {
	o, err := run(alike, subjects[subject], seed, 8*time.Minute, outage)
	g.Expect(err).NotTo(HaveOccurred())
	return o
}

func TestGrowthThatPaysIsNoWorseThanTheBestOfTheOthers(t *testing.T) {
	for _, outage := range outages {
		t.Run(outage.String(), func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			pays := play(g, onlyIfPays, 7, outage).Good
			g.Expect(pays).To(BeNumerically(">", 0.98*play(g, greedy, 7, outage).Good))
			g.Expect(pays).To(BeNumerically(">", play(g, fixed, 7, outage).Good))
		})
	}
}

func TestNoDeviceIsHeldTwice(t *testing.T) {
	g := NewWithT(t)
	o := play(g, greedy, 3, time.Minute)
	g.Expect(o.Held / horizon(8*time.Minute).Seconds()).To(BeNumerically("<", nodes*devicesPerNode))
	g.Expect(o.Good).To(BeNumerically("<", o.Held))
	g.Expect(o.Changes).To(BeNumerically(">", 0))
}

func TestTheSameSeedGivesTheSameResult(t *testing.T) {
	g := NewWithT(t)
	g.Expect(play(g, onlyIfPays, 5, time.Minute)).To(Equal(play(g, onlyIfPays, 5, time.Minute)))
}

func TestRoomGoesToWhoGainsMost(t *testing.T) {
	g := NewWithT(t)
	good := func(way int) float64 {
		o, err := run(unlike, dividers[way], 7, gainEvery, gainOutage)
		g.Expect(err).NotTo(HaveOccurred())
		return o.Good
	}
	g.Expect(good(2)).To(BeNumerically(">", 1.02*good(1)), "trainings say how they scale, and are believed")
}

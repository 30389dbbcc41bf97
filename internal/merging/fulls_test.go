package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// A full model whose marker a fast clock wrote stays the newest by time for an hour. The merges of that hour follow one another
// all the same, and each increment is merged once.
func TestAMarkerOfAFastClockHoldsUpNoModel(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 10)
	m := w.add("ctr")
	run := func(increments ...string) {
		m.store.increments = append(m.store.increments, increments...)
		if w.settle(); m.status().Run == nil {
			w.pass(11 * time.Hour)
		}
		g.Expect(m.placed()).To(BeTrue())
		w.merge(m)
		w.settle()
	}
	run()
	first := m.status().LastFull.Name
	m.store.fulls[0].Time = w.now.Add(48 * time.Hour)
	run("000004")
	second := m.status().LastFull
	g.Expect(second.Name).NotTo(Equal(first))
	w.pass(10 * time.Minute)
	g.Expect(m.status().LastFull).To(Equal(second))
	g.Expect(m.status().Increments).To(BeZero())
	run("000005")
	g.Expect(m.status().History[0].Increments).To(BeEquivalentTo(1), "and not those of the hour once more")
	g.Expect(m.status().LastFull.LastIncrement).To(Equal("000005"))
}

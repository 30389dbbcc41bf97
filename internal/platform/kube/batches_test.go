package kube

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

func TestBatchesStartSlowly(t *testing.T) {
	g := NewWithT(t)
	all := make([]int, 100)
	for i := range all {
		all[i] = i
	}
	var sizes []int
	for batch := range Batches(all) {
		sizes = append(sizes, len(batch))
	}
	g.Expect(sizes).To(Equal([]int{1, 2, 4, 8, 16, 32, 32, 5}))
	g.Expect(slices.Concat(slices.Collect(Batches(all))...)).To(Equal(all), "each once, in their order")
	g.Expect(slices.Collect(Batches([]int{}))).To(BeEmpty())
}

func TestTheEarliestProblemOfABatchIsTold(t *testing.T) {
	g := NewWithT(t)
	var done atomic.Int32
	p := Together([]string{"a", "b", "c"}, func(name string) *Problem {
		done.Add(1)
		if name == "a" {
			return nil
		}
		return ProblemOf(errors.New("no"), "create "+name)
	})
	g.Expect(p.Message).To(HavePrefix("Cannot create b: no"))
	g.Expect(done.Load()).To(Equal(int32(3)), "all of a batch are done")
	g.Expect(Together([]string{"a", "b"}, func(string) *Problem { return nil })).To(BeNil())
}

func TestABatchIsDoneAtOnce(t *testing.T) {
	arrived, all := make(chan struct{}, 2), make(chan struct{})
	go func() {
		<-arrived
		<-arrived
		close(all)
	}()
	// Each waits for the other, so the test ends only if neither waits for the other's end.
	NewWithT(t).Expect(Together([]int{1, 2}, func(int) *Problem {
		arrived <- struct{}{}
		<-all
		return nil
	})).To(BeNil())
}

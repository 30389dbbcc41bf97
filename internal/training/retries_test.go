package training

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// More workers back off at a time than status has room for. The later ones are kept, and no worker is replaced before its time.
func TestOfManyBackOffsTheLatestAreKept(t *testing.T) {
	const workers, early = 600, 200
	g := NewWithT(t)
	w := newSimulator(t, workers, workers).trains()
	rejectThose := func(from, to int32) {
		for i := from; i < to; i++ {
			w.reject(i, "OutOfcpu")
		}
		w.step().pass(statuspace.SoonDelay).step()
	}
	rejectThose(1, early)
	w.pass(time.Second)
	rejectThose(early, workers)
	retries := w.status().Retries
	g.Expect(retries).To(HaveLen(v1beta1.MaxRetries))
	g.Expect(retries[len(retries)-1].Index).To(Equal(int32(workers - 1)))
	for i := int32(early); i < workers; i++ {
		g.Expect(rejections(w, i)).To(Equal(int32(1)), "the back-off of worker %d is one of the latest", i)
	}
	for i := range int32(workers) {
		g.Expect(w.worker(i).HasFailed()).To(Equal(i > 0), "worker %d stays for its back-off, with an entry or without", i)
	}
	w.pass(losses.FirstBackoff).settle().run().settle()
	g.Expect(w.status().ReadyReplicas).To(Equal(int32(workers)), "and all are replaced")
	g.Expect(w.status().Retries).To(BeEmpty())
}

package recorder

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// operator is one with a connection of its own to a ledger, that leads.
type operator struct {
	*cluster

	to *ledger.Ledger
}

func leading(t *testing.T, g *WithT, file string) operator {
	t.Helper()
	l, err := OpenLedger(t.Context(), config.Ledger{File: file})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(l.Close()).To(Succeed()) })
	o := operator{newCluster(t, l), l}
	o.stand()
	o.recorder.beginLeading()
	g.Expect(o.recorder.closeGap(t.Context(), l)).To(Succeed())
	return o
}

func (o operator) write() error { return o.recorder.writeWaiting(o.t.Context(), o.to, true) }

// hours are the GPU hours of alice in the last two hours, read anew.
func (o operator) hours(g *WithT) float64 {
	g.THelper()
	_, _ = o.recorder.SpendingOf("ads", 2*time.Hour)
	o.recorder.readSpendings(o.t.Context(), o.to, true)
	spent, err := o.recorder.SpendingOf("ads", 2*time.Hour)
	g.Expect(err).NotTo(HaveOccurred())
	return float64(spent.ByUser["alice"]) / 3_600_000
}

// Two operators that both believe to lead watch the same pods, one of them late, and write one file at the same moments: each pod
// is in it once, from when it was bound until it ended.
func TestTwoOperatorsOnOneFile(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	first, late := leading(t, g, file), leading(t, g, file)
	began := time.Now().Add(-time.Hour).Truncate(time.Second)
	pod := func(i int, with ...func(*corev1.Pod)) *corev1.Pod {
		p := newPod(fmt.Sprintf("p-%d", i), boundOn(began), labelled("tideline.io/owner", "alice"))
		for _, f := range with {
			f(p)
		}
		return p
	}
	write := func() {
		g.THelper()
		var both errgroup.Group
		both.Go(first.write)
		both.Go(late.write)
		g.Expect(both.Wait()).To(Succeed(), "each waits for the other's lock")
	}
	const pods = 40
	halfway := phase(corev1.PodSucceeded, began.Add(30*time.Minute))
	for i := range pods {
		first.set(pod(i))
		late.set(pod(i))
	}
	write()
	for i := range pods {
		first.set(pod(i, halfway))
		write() // the other says that it runs still
		late.set(pod(i, halfway))
	}
	write()
	third := leading(t, g, file) // whoever leads next
	for i := range pods {
		third.set(pod(i, halfway))
	}
	g.Expect(third.write()).To(Succeed())
	for _, o := range []operator{first, late, third} {
		g.Expect(o.hours(g)).To(BeNumerically("~", pods*0.5, 0.01))
	}
	g.Expect(third.to.OpenStays(t.Context())).To(BeEmpty())
}

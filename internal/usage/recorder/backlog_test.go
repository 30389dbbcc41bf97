package recorder

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tideline-io/tideline/internal/usage/ledger"
)

func TestBacklogIsBounded(t *testing.T) {
	g := NewWithT(t)
	b := &backlog{metrics: newMetrics(func() float64 { return 0 })}
	b.beginLeading()
	end := func(i int) {
		name := strconv.Itoa(i)
		b.keepEnd(newPod(name).UID, lostStay(ledger.Stay{Pod: ledger.Pod{UID: name}, End: noon.Add(time.Duration(i) * time.Second)}))
	}
	b.keepBegin("first", ledger.Stay{})
	for i := range mostStays + 3 {
		end(i)
	}
	b.keepBegin("last", ledger.Stay{})
	g.Expect(b.size()).To(Equal(mostStays))
	g.Expect(b.isKnown("first")).To(BeFalse(), "a begin is recorded later in any case")
	g.Expect(b.isKnown("last")).To(BeFalse())
	g.Expect(b.isKnown("uid-2")).To(BeFalse(), "the oldest go")
	g.Expect(b.isKnown("uid-3")).To(BeTrue())
	g.Expect(testutil.ToFloat64(b.metrics.stays)).To(Equal(3.0), "ends that are lost")

	b = &backlog{metrics: newMetrics(func() float64 { return 0 })}
	b.beginLeading()
	for i := range mostDecisions {
		b.keepDecisions(ledger.Decision{Name: strconv.Itoa(i)})
	}
	taken := b.takeDecisions()
	b.keepDecisions(ledger.Decision{Name: "new"})
	b.giveBack(taken)
	g.Expect(b.size()).To(Equal(mostDecisions))
	g.Expect(b.decisions[0].Name).To(Equal("1"), "the oldest goes")
	g.Expect(b.decisions[mostDecisions-1].Name).To(Equal("new"))
	g.Expect(testutil.ToFloat64(b.metrics.decisions)).To(Equal(1.0))
}

func TestFirstEndHoldsUnlessItWasAGuess(t *testing.T) {
	g := NewWithT(t)
	b := &backlog{metrics: newMetrics(func() float64 { return 0 })}
	b.beginLeading()
	at := func(n int) ledger.Stay {
		return ledger.Stay{Pod: ledger.Pod{Queue: strconv.Itoa(n)}, Final: true, End: noon.Add(time.Duration(n) * time.Second)}
	}
	b.keepBegin("a", ledger.Stay{Pod: ledger.Pod{Queue: "begin"}})
	b.keepEnd("a", lostStay(at(1)))
	b.keepEnd("a", at(2))
	b.keepEnd("a", at(3))
	b.keepEnd("a", lostStay(at(4)))
	g.Expect(b.waitingStays()).To(ConsistOf(And(HaveField("End", at(2).End), HaveField("Queue", "begin"), HaveField("Uncertain",
		false))))
	begun := ledger.Stay{Pod: ledger.Pod{UID: "a"}}
	b.forgetRecorded([]ledger.Stay{begun})
	g.Expect(b.waitingStays()).To(HaveLen(1), "the end came while the begin was recorded")
	b.forgetRecorded(b.waitingStays())
	g.Expect(b.isKnown("a")).To(BeTrue(), "of another UID")
}

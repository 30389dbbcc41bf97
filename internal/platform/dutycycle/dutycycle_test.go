package dutycycle

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestARestIsSoManyTimesAsLongAsTheWork(t *testing.T) {
	g, r := NewWithT(t), Rest{Times: 9, Most: 5 * time.Second}
	g.Expect(r.After(0)).To(BeZero())
	g.Expect(r.After(500 * time.Millisecond)).To(Equal(4500 * time.Millisecond))
	g.Expect(r.After(time.Minute)).To(Equal(5 * time.Second))
}

func TestALimiterRestsNineTimesAsLongAsItWorked(t *testing.T) {
	g := NewWithT(t)
	clock := time.Unix(0, 0)
	now := func() time.Time { return clock }
	takes := func(d time.Duration) func() { return func() { clock = clock.Add(d) } }
	var l Limiter
	g.Expect(l.DoWork(now, takes(ShortWork))).To(BeTrue())
	g.Expect(l.DoWork(now, takes(time.Second))).To(BeTrue(), "no rest after short work")
	clock = clock.Add(9*time.Second - 1)
	worked := false
	g.Expect(l.DoWork(now, func() { worked = true })).To(BeFalse(), "it rests")
	g.Expect(worked).To(BeFalse())
	clock = clock.Add(1)
	g.Expect(l.DoWork(now, func() {
		g.Expect(l.DoWork(now, takes(0))).To(BeFalse(), "one at a time")
	})).To(BeTrue())
}

package recorder

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/capacity"
)

func TestRoomIsMeasuredOnceInEachInterval(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		begin := time.Now().Truncate(roomInterval)
		pass(time.Until(begin.Add(roomInterval + 7*time.Minute)))
		c.room = capacity.Fragmentation{Free: 7, Unusable: 0.25, Weight: 3}
		c.start()
		pass(9 * time.Minute)
		same := func(n int) any {
			return And(HaveField("At", BeTemporally("==", begin.Add(time.Duration(n)*roomInterval))), HaveField("Free", 7.0),
				HaveField("Unusable", 0.25), HaveField("Gangs", int64(3)))
		}
		g.Expect(m.measured()).To(HaveExactElements(same(1), same(2)), "at once, for the interval that has begun")
		c.roomTries.Store(1)
		pass(roomInterval)
		g.Expect(m.measured()).To(HaveLen(2), "what fails is left out")
		pass(roomInterval)
		g.Expect(m.measured()).To(HaveExactElements(same(1), same(2), same(4)))
		m.setDown(true)
		pass(time.Minute + roomInterval)
		m.setDown(false)
		pass(3 * time.Minute)
		g.Expect(m.measured()).To(HaveExactElements(same(1), same(2), same(4), same(5)), "a ledger that is down keeps it to later")
	})
}

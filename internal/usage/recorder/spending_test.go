package recorder

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

func TestSpending(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		m.totals = []ledger.Total{
			{Group: []string{"ads", "alice"}, Resource: gpu, AmountSeconds: 3_600_000},
			{Group: []string{"ads", "alice"}, Resource: "amd.com/gpu", AmountSeconds: 1},
			{Group: []string{"ads", ""}, Resource: gpu, AmountSeconds: 7},
			{Group: []string{"search", "bob"}, Resource: gpu, AmountSeconds: 8},
		}
		m.begun = now().Add(-time.Minute)
		begun := m.begun
		c.start()
		spent := func() (admission.Spending, error) { return c.recorder.SpendingOf("ads", time.Hour) }
		_, err := spent()
		g.Expect(err).To(MatchError(ErrUnknown))
		pass(endsInterval)
		g.Expect(spent()).To(Equal(admission.Spending{ByUser: map[string]int64{"alice": 3_600_001, "": 7}, Begun: begun}))
		g.Expect(m.asked[0].To.Sub(m.asked[0].From)).To(Equal(time.Hour))
		g.Expect(m.asked[0].Where[ledger.Resource]).To(ConsistOf(gpu, "nvidia.com/gpu.shared", "volcano.sh/vgpu-number", "amd.com/gpu"))
		for range 300 { // as often as it may be asked
			_, err := spent()
			g.Expect(err).NotTo(HaveOccurred())
			pass(time.Second)
		}
		g.Expect(len(m.asked)).To(And(BeNumerically(">=", 5), BeNumerically("<=", 7)), "it is read once a minute")
		m.setDown(true)
		for range 10 {
			pass(time.Minute)
			_, err := spent()
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(spent()).To(And(HaveField("ByUser", HaveKeyWithValue("alice", int64(3_600_001))),
			HaveField("Age", BeNumerically(">=", 10*time.Minute))), "the last that is known, and how old it is")
		m.setDown(false)
		pass(2 * time.Minute)
		g.Expect(spent()).To(HaveField("Age", BeNumerically("<", 90*time.Second)))
		g.Expect(c.recorder.SpendingOf("none", time.Hour)).To(HaveField("ByUser", BeEmpty()))
		pass(askedFor + 2*time.Minute)
		read := len(m.asked)
		pass(10 * time.Minute)
		g.Expect(m.asked).To(HaveLen(read), "it is no longer asked for")
		_, err = spent()
		g.Expect(err).To(MatchError(ErrUnknown))
	})
}

func TestUseThatIsBeingReadIsNotUnknown(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		c.config.Ledger.File = "/ledger.db"
		m.setDown(true)
		c.start()
		spent := func() error {
			_, err := c.recorder.SpendingOf("ads", time.Hour)
			return err
		}
		g.Expect(spent()).To(MatchError(admission.ErrUnread), "an operator that has just been started")
		pass(firstReading - time.Second)
		g.Expect(spent()).To(MatchError(admission.ErrUnread))
		pass(time.Second)
		g.Expect(spent()).To(MatchError(ErrUnknown), "a ledger that cannot be opened blocks no job for longer")
		m.setDown(false)
		pass(time.Minute)
		g.Expect(spent()).To(Succeed())
	})
}

func TestPartsOfDevicesAreNotSpentTwice(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		c.config.Sharing = config.Sharing{
			{Resource: "volcano.sh/vgpu-cores", CountsAs: gpu, Whole: 100, Times: "volcano.sh/vgpu-number"},
			{Resource: "nvidia.com/gpu.shared", CountsAs: gpu, Whole: 4},
		}
		c.start()
		_, err := c.recorder.SpendingOf("ads", time.Hour)
		g.Expect(err).To(MatchError(ErrUnknown))
		pass(endsInterval)
		g.Expect(m.asked[0].Where[ledger.Resource]).To(ConsistOf(gpu, "amd.com/gpu"))
	})
}

func TestWhatWasUsedCannotBeRead(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		m.unread = true
		c.start()
		spent := func() error {
			_, err := c.recorder.SpendingOf("ads", time.Hour)
			return err
		}
		opened := m.opened
		c.set(newPod("a", boundOn(now())))
		for range 10 {
			g.Expect(spent()).To(MatchError(ErrUnknown))
			pass(time.Minute)
		}
		g.Expect(m.opened).To(Equal(opened), "the ledger stays open")
		g.Expect(m.get("a").End).To(BeTemporally("~", now(), time.Minute), "and is written")
		g.Expect(len(m.asked)).To(BeNumerically("~", 10, 1), "it is tried again each minute")
		g.Expect(testutil.ToFloat64(c.recorder.metrics.failures)).To(BeNumerically("==", len(m.asked)))
		m.mu.Lock()
		m.unread = false
		m.mu.Unlock()
		pass(time.Minute)
		g.Expect(spent()).To(Succeed())
	})
}

package recorder

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

// suspected is a decision about a node, of which witnesses have something against it.
func suspected(node, level, witnesses string, at time.Time) ledger.Decision {
	d := ledger.Decision{At: at, Kind: decisionlog.NodeSuspected, Name: node, Reason: level}
	if witnesses != "" {
		d.Figures = map[string]string{decisionlog.Witnesses: witnesses}
	}
	return d
}

func TestWhatIsHeldAgainstNodesComesBackFromTheLedger(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		start := now()
		pass(40 * 24 * time.Hour)
		last := suspected("bad", "accused", "[2]", now().Add(-time.Hour))
		m.decisions = []ledger.Decision{
			suspected("old", "accused", "[1]", start), suspected("bad", "doubted", "[1]", now().Add(-2*time.Hour)), last,
			suspected("mended", "shunned", "[1]", now().Add(-2*time.Hour)), suspected("mended", "clear", "", now().Add(-time.Hour)),
		}
		c.start()
		_, known := c.recorder.RecallSuspects()
		g.Expect(known).To(BeFalse(), "the ledger is not read yet")
		pass(endsInterval)
		held, known := c.recorder.RecallSuspects()
		g.Expect(known).To(BeTrue())
		g.Expect(held).To(ConsistOf(last), "the last of each, of the last 30 days, without those against which nothing is held")
		held, known = c.recorder.RecallSuspects()
		g.Expect(known).To(BeTrue())
		g.Expect(held).To(BeEmpty(), "once")
	})
}

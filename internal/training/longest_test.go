package training

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// The smaller of the job's own bound and its tier's holds, and says which it is.
func TestTierBoundsHowLongAJobTrains(t *testing.T) {
	const (
		own    = "The job has trained for 1h0m0s, as long as deadlines.activeSeconds allows. Raise it and submit the job again"
		byTier = "The job has trained for %s, as long as tier exploratory allows (tiers[].longestRunSeconds of the operator's " +
			"configuration). Submit it again, and it continues from its last checkpoint, or create it in a tier that allows longer runs."
	)
	for name, c := range map[string]struct {
		own  *int32
		tier int32
		ends time.Duration // 0 for never
		says string
	}{
		"neither":                   {},
		"the job's alone":           {own: ptr.To[int32](3600), ends: time.Hour, says: own},
		"the tier's alone":          {tier: 3600, ends: time.Hour, says: fmt.Sprintf(byTier, "1h0m0s")},
		"the job's, which is less":  {own: ptr.To[int32](3600), tier: 7200, ends: time.Hour, says: own},
		"the tier's, which is less": {own: ptr.To[int32](3600), tier: 1800, ends: 30 * time.Minute, says: fmt.Sprintf(byTier, "30m0s")},
		"both the same":             {own: ptr.To[int32](3600), tier: 3600, ends: time.Hour, says: own},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 2, 2)
			w.o.Job.Spec.Deadlines.ActiveSeconds = c.own
			w.o.Config.Tiers[0].LongestRunSeconds = c.tier
			w.settle().pass(5 * time.Hour).settle().run().settle()
			if c.ends == 0 {
				g.Expect(w.last.RequeueAfter).To(BeZero())
				return
			}
			g.Expect(w.last.RequeueAfter).To(BeNumerically("~", c.ends, time.Minute), "the wait does not count")
			w.pass(w.last.RequeueAfter).step()
			g.Expect(w.status().Phase).To(Equal(v1beta1.PhaseFailed))
			g.Expect(w.status().Reason).To(Equal(v1beta1.ReasonDeadlineExceeded))
			g.Expect(w.status().Message).To(HavePrefix(c.says))
		})
	}
}

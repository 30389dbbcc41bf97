package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// The smaller of the merge's own bound and its tier's holds, and says which it is.
func TestTierBoundsHowLongAMergeRuns(t *testing.T) {
	const (
		own    = "The merge ran for runTimeoutSeconds (1h0m0s) and its full model is not complete: it was stopped. Raise "
		byTier = "The merge ran for as long as a merge of tier exploratory may (30m0s; tiers[].longestRunSeconds of the operator's " +
			"configuration) and its full model is not complete: it was stopped. Use more or larger pods, or create it of a tier that " +
			"may run for longer, or watch its logs while the next run runs."
	)
	for name, c := range map[string]struct {
		tier int32
		ends time.Duration
		says string
	}{
		"no bound of the tier": {0, time.Hour, own},
		"one that is more":     {7200, time.Hour, own},
		"one that is less":     {1800, 30 * time.Minute, byTier},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 4)
			w.config.Tiers[0].LongestRunSeconds = c.tier
			m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.RunTimeoutSeconds = ptr.To[int32](3600) }).full(w, 12*time.Hour)
			w.settle()
			g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging))
			w.pass(c.ends - time.Minute)
			w.settle()
			g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging), "it may go on")
			w.pass(time.Minute)
			w.settle()
			g.Expect(m.status().History).NotTo(BeEmpty())
			g.Expect(m.status().History[0].Outcome).To(Equal(v1beta1.OutcomeTimedOut))
			g.Expect(m.status().History[0].Message).To(HavePrefix(c.says))
		})
	}
}

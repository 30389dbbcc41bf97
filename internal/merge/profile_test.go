package merge

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

func TestProfileAllowsTiersAndPools(t *testing.T) {
	profile := &v1alpha1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "team-ads"},
		Spec: v1alpha1.ResourceQuotaProfileSpec{
			Tiers:  []v1alpha1.ProfileTier{{Name: "exploratory"}, {Name: "small-traffic", Default: true}},
			Merges: &v1alpha1.ProfileMerges{Pools: []string{"merge-ads"}},
		},
	}
	pool := func(s *v1alpha1.MergeJobSpec) { s.Pool = "merge-ads" }
	for name, c := range map[string]struct {
		change func(*v1alpha1.MergeJobSpec)
		reason string
		says   string
	}{
		"a tier that it does not list": {func(s *v1alpha1.MergeJobSpec) { s.Tier = "main-traffic" }, v1alpha1.ReasonTierNotAllowed,
			`spec.tier: "main-traffic" is not a tier that profile team-ads allows, which allows exploratory, small-traffic`},
		"a pool that it does not list": {func(s *v1alpha1.MergeJobSpec) { s.Pool = "tideline-merge" }, v1alpha1.ReasonPoolNotAllowed,
			`spec.pool: "tideline-merge" is no pool that profile team-ads allows (spec.merges.pools), which allows merge-ads`},
		"its default": {func(*v1alpha1.MergeJobSpec) {}, v1alpha1.ReasonMerging, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 4)
			w.config.Merges.Pools = []string{"tideline-merge", "merge-ads"}
			m := w.add("a", pool, c.change).full(w, 12*time.Hour)
			m.profile = profile
			w.settle()
			g.Expect(m.status().Reason).To(Equal(c.reason))
			g.Expect(m.status().Message).To(ContainSubstring(c.says))
			g.Expect(m.status().Profile).To(Equal("team-ads"))
			if c.says == "" {
				g.Expect(m.status().Tier).To(Equal("small-traffic"))
				m.profile = nil
				w.settle()
				g.Expect(m.status().Tier).To(Equal("small-traffic"), "a run keeps its tier")
			}
		})
	}
}

func TestTierOnRecordThatTheConfigurationLost(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 4)
	m := w.add("a").full(w, 12*time.Hour)
	w.settle()
	g.Expect(m.status().Tier).To(Equal("exploratory"))
	w.config.Tiers = w.config.Tiers[1:]
	w.config.Tiers[0].Default = true
	w.settle()
	w.merge(m)
	w.settle()
	g.Expect(m.status().Run).To(BeNil(), "the run ends")
	g.Expect(m.status().Tier).To(Equal("small-traffic"), "and the next has the default of now")
}

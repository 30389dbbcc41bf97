package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/quota/approval"
)

func TestProfileAllowsTiersAndPools(t *testing.T) {
	profile := &v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "team-ads"},
		Spec: v1beta1.ResourceQuotaProfileSpec{
			Tiers:  []v1beta1.ProfileTier{{Name: "exploratory"}, {Name: "small-traffic", Default: true}},
			Merges: &v1beta1.ProfileMerges{Pools: []string{"merge-ads"}},
		},
	}
	pool := func(s *v1beta1.MergeJobSpec) { s.Pool = "merge-ads" }
	for name, c := range map[string]struct {
		change func(*v1beta1.MergeJobSpec)
		reason string
		says   string
	}{
		"a tier that it does not list": {func(s *v1beta1.MergeJobSpec) { s.Tier = "main-traffic" }, v1beta1.ReasonTierNotAllowed,
			`spec.tier: profile team-ads does not allow tier "main-traffic"; it allows exploratory, small-traffic`},
		"a pool that it does not list": {func(s *v1beta1.MergeJobSpec) { s.Pool = "tideline-merge" }, v1beta1.ReasonPoolNotAllowed,
			`spec.pool: profile team-ads does not allow pool "tideline-merge"; its spec.merges.pools allows merge-ads`},
		"its default": {func(*v1beta1.MergeJobSpec) {}, v1beta1.ReasonMerging, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 4)
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

func TestTierByGroup(t *testing.T) {
	profile := &v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "team-ads"},
		Spec: v1beta1.ResourceQuotaProfileSpec{Members: []v1beta1.ProfileMember{
			{Kind: v1beta1.MemberUser, Name: "ivy", MaxTier: "exploratory"}, {Kind: v1beta1.MemberGroup, Name: "leads"},
			{Kind: v1beta1.MemberGroup, Name: "interns", MaxTier: "exploratory"},
		}},
	}
	for name, c := range map[string]struct {
		groups      []string
		webhooksOff bool
		says        string // nothing if it is allowed
	}{
		"a group that may have less":   {[]string{"interns"}, false, "allows exploratory to ivy as a member of interns. Set spec.tier"},
		"a group that may have more":   {[]string{"interns", "leads"}, false, ""},
		"an unchecked group":           {[]string{"leads"}, true, "allows exploratory to ivy. Set spec.tier"},
		"a group that no entry is for": {[]string{"ml"}, false, "allows exploratory to ivy. Set spec.tier"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 4)
			w.webhooksOff = c.webhooksOff
			m := w.add("a", func(s *v1beta1.MergeJobSpec) {
				s.Tier, s.Owner = "small-traffic", "ivy"
				s.Submitter = &v1beta1.Submitter{Username: "ivy", Groups: c.groups}
			}).full(w, 12*time.Hour)
			m.profile = profile
			w.settle()
			if c.says == "" {
				g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging))
				return
			}
			g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonTierNotAllowed))
			g.Expect(m.status().Message).To(ContainSubstring(c.says))
			checked := meta.FindStatusCondition(m.status().Conditions, v1beta1.ConditionOwnerChecked)
			g.Expect(checked != nil).To(Equal(c.webhooksOff))
			if c.webhooksOff {
				g.Expect(checked.Message).To(HaveSuffix(`that "ivy" owns it. Tideline ignores spec.submitter.`))
				w.webhooksOff = false
				w.settle()
				g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonTierNotAllowed), "webhooks that come later change nothing")
			}
		})
	}
}

// approve has bob approve the merge for a time, in a profile where its tier takes that.
func (m *merger) approve(d time.Duration) {
	m.object.Annotations = map[string]string{v1beta1.AnnotationApproval: approval.Approval{
		By: "bob@example.com", UID: m.object.UID, Profile: "team-ads", Tier: "exploratory", At: metav1.NewTime(m.world.now),
		Until: metav1.NewTime(m.world.now.Add(d)),
	}.String()}
}

// approving is a profile whose jobs wait for approval.
func approving() *v1beta1.ResourceQuotaProfile {
	return &v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "team-ads"},
		Spec: v1beta1.ResourceQuotaProfileSpec{
			Tiers: []v1beta1.ProfileTier{{Name: "exploratory", Default: true, RequiresApproval: true}},
		},
	}
}

func TestMergeThatIsDueWaitsForApproval(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, time.Hour)
	m.profile = approving()
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNotDue), "it needs no approval before it is due")
	before := m.status().DeepCopy()
	w.pass(10 * time.Hour)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonAwaitingApproval))
	g.Expect(m.status().Summary).To(Equal("Waiting (awaiting approval)"))
	g.Expect(m.status().Message).To(ContainSubstring("tideline approve ads/a --for 72h, or kubectl annotate mj a -n ads "))
	g.Expect(m.status().Position).To(BeNil(), "it is in no line")
	g.Expect(EventsBetween(before, m.status())).To(Equal([]statuspace.Event{
		{Type: "Normal", Reason: v1beta1.ReasonAwaitingApproval, Message: m.status().Message},
	}))

	m.approve(11 * time.Hour)
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging))
	w.merge(m)
	w.settle()
	m.store.increments = append(m.store.increments, "000004")
	w.pass(10 * time.Hour)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging), "it counts for all runs that begin until then")
	w.pass(time.Hour)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging), "what runs stays")
	w.merge(m)
	w.settle()
	m.store.increments = append(m.store.increments, "000005")
	w.pass(10 * time.Hour)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonAwaitingApproval), "the next begins anew")
}

func TestApprovalExpiresInTheLine(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	w.leaving = []Leftover{{Gone: w.now}}
	m := w.add("a").full(w, 12*time.Hour)
	m.profile = approving()
	m.approve(time.Minute)
	until := w.now.Add(time.Minute)
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonInLine))
	g.Expect(w.now.Add(w.plan().RequeueAfter)).To(Equal(until), "it is looked at again then")
	w.pass(time.Minute)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonAwaitingApproval))
	g.Expect(m.status().Position).To(BeNil(), "it has left the line")
}

func TestTierOnRecordThatTheConfigurationLost(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
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

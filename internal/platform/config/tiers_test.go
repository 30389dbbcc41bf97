package config

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/ownership"
)

func TestDefaultTiers(t *testing.T) {
	g := NewWithT(t)
	tiers := DefaultTiers()
	g.Expect(tiers.JoinedNames()).To(Equal("exploratory, small-traffic, main-traffic"))
	for i, tier := range tiers {
		g.Expect(tier.Priority).To(BeNumerically(">", 0), "every core comes before anybody's surplus")
		g.Expect(tier.SurplusPriority).To(BeNumerically("<", -10), "cluster-autoscaler buys no nodes for surplus")
		if i > 0 {
			g.Expect(tier.Priority).To(BeNumerically(">", tiers[i-1].Priority))
			g.Expect(tier.SurplusPriority).To(BeNumerically(">", tiers[i-1].SurplusPriority))
		}
	}
}

func TestFind(t *testing.T) {
	g := NewWithT(t)
	tier, ok := DefaultTiers().FindTier("")
	g.Expect(ok).To(BeTrue())
	g.Expect(tier.Name).To(Equal("exploratory"))
	tier, ok = DefaultTiers().FindTier("main-traffic")
	g.Expect(ok).To(BeTrue())
	g.Expect(tier.ClassName()).To(Equal("tideline-main-traffic"))
	g.Expect(tier.SurplusClassName()).To(Equal("tideline-main-traffic-surplus"))
	_, ok = DefaultTiers().FindTier("gold")
	g.Expect(ok).To(BeFalse())
}

func TestEachTierWeighsTwiceTheOneBeforeIt(t *testing.T) {
	g := NewWithT(t)
	tiers := DefaultTiers()
	for name, factor := range map[string]int64{
		"exploratory": 1, "small-traffic": 2, "main-traffic": 4, "": 1, "gold": 1,
	} {
		g.Expect(tiers.MergeFactor(name)).To(Equal(factor), name)
	}
	tiers[0].Default, tiers[2].Default = false, true
	g.Expect(tiers.MergeFactor("")).To(Equal(int64(4)), "no name is the default tier's")
	many := make(Tiers, 70)
	for i := range many {
		many[i].Name = strconv.Itoa(i)
	}
	g.Expect(many.MergeFactor("9")).To(Equal(int64(512)))
	g.Expect(many.MergeFactor("10")).To(Equal(int64(1024)))
	g.Expect(many.MergeFactor("69")).To(Equal(int64(1024)))
}

func TestTiersOfAProfile(t *testing.T) {
	alice := ownership.Owner{User: "alice", Groups: []string{"interns", "ml"}}
	of := func(tiers ...v1beta1.ProfileTier) *v1beta1.ResourceQuotaProfile {
		return &v1beta1.ResourceQuotaProfile{Spec: v1beta1.ResourceQuotaProfileSpec{Tiers: tiers}}
	}
	with := func(p *v1beta1.ResourceQuotaProfile, members ...v1beta1.ProfileMember) *v1beta1.ResourceQuotaProfile {
		p.Spec.Members = members
		return p
	}
	for name, c := range map[string]struct {
		profile  *v1beta1.ResourceQuotaProfile
		names    string
		standard string
	}{
		"none":                {nil, "exploratory, small-traffic, main-traffic", "exploratory"},
		"one that lists none": {of(), "exploratory, small-traffic, main-traffic", "exploratory"},
		"a default": {
			of(v1beta1.ProfileTier{Name: "main-traffic", Default: true}, v1beta1.ProfileTier{Name: "small-traffic"}),
			"small-traffic, main-traffic", "main-traffic",
		},
		"the first without a default": {
			of(v1beta1.ProfileTier{Name: "main-traffic"}, v1beta1.ProfileTier{Name: "small-traffic"}),
			"small-traffic, main-traffic", "small-traffic",
		},
		"unknown ones": {of(v1beta1.ProfileTier{Name: "gold"}), "", ""},
		"a member up to a tier": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice", MaxTier: "small-traffic"}),
			"exploratory, small-traffic", "exploratory",
		},
		"a member of two entries": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice", MaxTier: "small-traffic"},
				v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice", MaxTier: "exploratory"}), "exploratory, small-traffic",
			"exploratory",
		},
		"a member of one entry without a tier": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice", MaxTier: "exploratory"},
				v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice"}),
			"exploratory, small-traffic, main-traffic", "exploratory",
		},
		"another member": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "bob", MaxTier: "exploratory"}),
			"exploratory, small-traffic, main-traffic", "exploratory",
		},
		"a member who may not have the default": {
			with(of(v1beta1.ProfileTier{Name: "main-traffic", Default: true}, v1beta1.ProfileTier{Name: "small-traffic"}),
				v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice", MaxTier: "small-traffic"}), "small-traffic", "small-traffic",
		},
		"a member up to an unknown tier": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice", MaxTier: "gold"}), "exploratory", "exploratory",
		},
		"a member below all": {
			with(of(v1beta1.ProfileTier{Name: "main-traffic"}), v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice",
				MaxTier: "exploratory"}), "", "",
		},
		"a group up to a tier": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "interns", MaxTier: "exploratory"}), "exploratory",
			"exploratory",
		},
		"two groups": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "interns", MaxTier: "exploratory"},
				v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "ml", MaxTier: "small-traffic"}), "exploratory, small-traffic",
			"exploratory",
		},
		"a member whose group may have more": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice", MaxTier: "exploratory"},
				v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "ml", MaxTier: "small-traffic"}), "exploratory, small-traffic",
			"exploratory",
		},
		"a member who may have more than the group": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "interns", MaxTier: "exploratory"},
				v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice"}),
			"exploratory, small-traffic, main-traffic", "exploratory",
		},
		"another group": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "leads", MaxTier: "exploratory"}),
			"exploratory, small-traffic, main-traffic", "exploratory",
		},
		"a group of her name": {
			with(of(), v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "alice", MaxTier: "exploratory"}),
			"exploratory, small-traffic, main-traffic", "exploratory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tiers := DefaultTiers().OpenTo(c.profile, alice)
			g.Expect(tiers.JoinedNames()).To(Equal(c.names))
			standard, _ := tiers.FindTier("")
			g.Expect(standard.Name).To(Equal(c.standard))
			g.Expect(DefaultTiers()[0].Default).To(BeTrue(), "the configuration's tiers stay as they are")
		})
	}
}

func TestAllowedNamesForWhom(t *testing.T) {
	p := &v1beta1.ResourceQuotaProfile{Spec: v1beta1.ResourceQuotaProfileSpec{Members: []v1beta1.ProfileMember{
		{Kind: v1beta1.MemberUser, Name: "ivy", MaxTier: "small-traffic"}, {Kind: v1beta1.MemberGroup, Name: "leads"},
		{Kind: v1beta1.MemberGroup, Name: "interns", MaxTier: "exploratory"}, {Kind: v1beta1.MemberGroup, Name: "contractors",
			MaxTier: "exploratory"},
	}}}
	for owner, c := range map[string]struct {
		groups []string
		says   string
	}{
		"ivy":   {nil, "exploratory, small-traffic to ivy"},
		"alice": {[]string{"interns"}, "exploratory to alice as a member of interns"},
		"bob":   {[]string{"interns", "ml", "contractors"}, "exploratory to bob as a member of contractors and interns"},
		"sam":   {[]string{"interns", "leads"}, "exploratory, small-traffic, main-traffic"},
		"tom":   {[]string{"ml"}, "exploratory, small-traffic, main-traffic"},
	} {
		NewWithT(t).Expect(DefaultTiers().NamesOpenTo(p, ownership.Owner{User: owner, Groups: c.groups})).To(Equal(c.says))
	}
}

func TestTierOnRecord(t *testing.T) {
	g := NewWithT(t)
	for asked, want := range map[string]string{"": "small-traffic", "main-traffic": "main-traffic"} {
		tier, ok := DefaultTiers().InEffect(asked, "small-traffic")
		g.Expect(ok).To(BeTrue())
		g.Expect(tier.Name).To(Equal(want))
	}
}

func TestSurplusIsProtectedForAsLongAsTheTierAllows(t *testing.T) {
	for _, c := range []struct {
		asked, most int32
		want        time.Duration
	}{{0, 0, 0}, {600, 0, 0}, {600, 300, 5 * time.Minute}, {300, 600, 5 * time.Minute}, {86400, 86400, 24 * time.Hour}} {
		tier := Tier{MaxMinSurplusRunSeconds: c.most}
		NewWithT(t).Expect(tier.SurplusProtection(c.asked)).To(Equal(c.want), "%d of at most %d", c.asked, c.most)
	}
}

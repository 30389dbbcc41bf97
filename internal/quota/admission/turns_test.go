package admission

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/ownership"
)

var now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

const gpu = corev1.ResourceName("nvidia.com/gpu")

func key(name string) Key {
	return Key{NamespacedName: types.NamespacedName{Namespace: "ads", Name: name}}
}

func gpus(n int64) MilliAmounts { return MilliAmounts{gpu: n} }

func limits(of ...Limit) Limits { return Limits{All: of} }

func perUser(most int64) Limit { return Limit{Scope: ScopeUser, Resource: gpu, Max: most} }

func inQueue(most int64) Limit { return Limit{Scope: ScopeQueue, Resource: gpu, Max: most} }

// asking is a job of a user's that waits for a gang of so many GPUs, and was created so many minutes after others.
func asking(name, user string, core int64, minutes int) Claimant {
	return Claimant{
		Job: key(name), User: user, Priority: 1000, Standing: v1beta1.StandingStaff,
		Created: now.Add(time.Duration(minutes) * time.Minute), Core: gpus(core), Worker: gpus(1), Asks: true, InQueue: true,
	}
}

// holding is one of alice's that has its gang, and so many surplus workers of one GPU each, and may have more.
func holding(name string, core int64, surplus, wants int32) Claimant {
	c := asking(name, "alice", core, -60)
	c.Asks, c.Wants = false, wants
	for i := range surplus {
		c.Surplus = append(c.Surplus, Surplus{UID: types.UID(fmt.Sprintf("%s-%d", name, i)), Index: i + 1})
	}
	return c
}

func turns(l Limits, all ...Claimant) map[Key]Turn {
	decided, _ := AdmitJobs(l, all, nil, nil, now)
	return decided
}

func TestWhoeverIsAtTheCapWaitsWithTheFigures(t *testing.T) {
	g := NewWithT(t)
	decided := turns(limits(perUser(8)),
		holding("ctr", 6, 0, 0), asking("ranker", "alice", 4, 0), asking("speech", "bob", 4, 0))
	g.Expect(decided[key("ranker")].Blocked).To(Equal(&Blocked{Limit: perUser(8), User: "alice", Used: 6, Asked: 4, Place: 1}))
	g.Expect(decided[key("ranker")].Admitted).To(BeFalse())
	g.Expect(decided[key("speech")].Admitted).To(BeTrue(), "another user's use is another matter")
	after := turns(limits(perUser(8)), asking("ranker", "alice", 4, 0))
	g.Expect(after[key("ranker")]).To(Equal(Turn{Admitted: true}))
}

func TestNoJobOvertakes(t *testing.T) {
	g := NewWithT(t)
	decided := turns(limits(perUser(8)),
		holding("ctr", 6, 0, 0), asking("small", "alice", 1, 2), asking("large", "alice", 4, 1), asking("other", "bob", 8, 3))
	g.Expect(decided[key("large")].Blocked.Place).To(Equal(int32(1)))
	g.Expect(decided[key("small")].Blocked).To(Equal(&Blocked{
		Limit: perUser(8), User: "alice", Used: 6, Asked: 1, Place: 2, Behind: key("large"),
	}), "it would fit, and the older one waits")
	g.Expect(decided[key("other")].Admitted).To(BeTrue(), "and stands in no line of bob's")
}

func TestOrderIsByTierStandingAndAge(t *testing.T) {
	g := NewWithT(t)
	intern, senior, tier := asking("intern", "ivy", 4, 0), asking("senior", "sam", 4, 5), asking("tier", "ivy", 4, 9)
	intern.Standing, senior.Standing = v1beta1.StandingIntern, v1beta1.StandingSenior
	tier.Standing, tier.Priority = v1beta1.StandingIntern, 100000
	old, young := asking("old", "bob", 4, 1), asking("young", "carol", 4, 2)
	decided := turns(limits(inQueue(4)), intern, young, tier, old, senior)
	g.Expect(decided[key("tier")].Admitted).To(BeTrue())
	places := map[string]int32{}
	for _, name := range []string{"senior", "old", "young", "intern"} {
		places[name] = decided[key(name)].Blocked.Place
	}
	g.Expect(places).To(Equal(map[string]int32{"senior": 1, "old": 2, "young": 3, "intern": 4}))
	g.Expect(decided[key("intern")].Blocked.Behind).To(Equal(key("young")))
}

func TestWhoWaitsAtOneLimitIsNotInTheWayAtAnother(t *testing.T) {
	g := NewWithT(t)
	decided := turns(limits(perUser(4), inQueue(8)),
		holding("a", 4, 0, 0), asking("b", "alice", 4, 1), asking("c", "bob", 4, 2))
	g.Expect(decided[key("b")].Blocked.Limit.Scope).To(Equal(ScopeUser))
	g.Expect(decided[key("c")].Admitted).To(BeTrue())
}

func TestWaitingAtTheOwnLimitDoesNotBlockTheTeam(t *testing.T) {
	g := NewWithT(t)
	decided := turns(limits(perUser(6), inQueue(12)), holding("a", 6, 0, 0), asking("b", "alice", 6, 1), asking("c", "bob", 6, 2),
		asking("d", "carol", 1, 3))
	g.Expect(decided[key("b")].Blocked.Limit.Scope).To(Equal(ScopeUser), "it is short at both")
	g.Expect(decided[key("c")].Admitted).To(BeTrue())
	g.Expect(decided[key("d")].Blocked.Behind).To(Equal(Key{}), "and is the first")
}

func TestWhatDoesNotComeRests(t *testing.T) {
	g := NewWithT(t)
	first, second := asking("first", "alice", 8, 0), asking("second", "alice", 8, 1)
	all, grants, at := []Claimant{first, second}, Grants{}, now
	admitted := map[string]bool{}
	for range 30 {
		var decided map[Key]Turn
		decided, grants = AdmitJobs(limits(perUser(8)), all, nil, grants, at)
		for _, name := range []string{"first", "second"} {
			admitted[name] = admitted[name] || decided[key(name)].Admitted
		}
		at = at.Add(time.Second)
	}
	g.Expect(admitted).To(Equal(map[string]bool{"first": true, "second": true}),
		"a job whose gang cannot come does not block others for ever")
	decided, _ := AdmitJobs(limits(perUser(8)), []Claimant{first}, nil, grants, at.Add(Arrival+Rest))
	g.Expect(decided[key("first")].Admitted).To(BeTrue(), "it has another try")
}

func TestWhatWasAllowedToOneAttemptIsNotAnothers(t *testing.T) {
	g := NewWithT(t)
	small := asking("a", "alice", 2, 0)
	small.Ask = "uid/1"
	_, grants := AdmitJobs(limits(perUser(8)), []Claimant{small}, nil, nil, now)
	large := asking("a", "alice", 9, 0)
	large.Ask = "uid/2"
	decided, _ := AdmitJobs(limits(perUser(8)), []Claimant{large}, nil, grants, now.Add(time.Second))
	g.Expect(decided[key("a")].Blocked.Never).To(BeTrue())
	g.Expect(decided[key("a")].Ask).To(Equal("uid/2"))
}

func TestSurplusThatDoesNotComeMakesNoWorkerLeave(t *testing.T) {
	g := NewWithT(t)
	fitting, there := holding("fitting", 1, 0, 5), holding("there", 1, 1, 1)
	_, grants := AdmitJobs(limits(perUser(8)), []Claimant{fitting, there}, nil, nil, now)
	all := []Claimant{fitting, there, asking("c", "alice", 2, 9)}
	decided, _ := AdmitJobs(limits(perUser(8)), all, nil, grants, now.Add(time.Second))
	g.Expect(decided[key("c")].Admitted).To(BeFalse())
	g.Expect(decided[key("there")].GiveUp).To(BeEmpty(), "what is not there is not waited for long")
}

func TestWhatCouldNeverBeIsSaidSo(t *testing.T) {
	g := NewWithT(t)
	perJob := Limit{Scope: ScopeJob, Resource: gpu, Max: 8}
	decided := turns(limits(perJob, perUser(16)), asking("a", "alice", 9, 0), asking("b", "alice", 8, 1))
	g.Expect(decided[key("a")].Blocked).To(Equal(&Blocked{Limit: perJob, User: "alice", Asked: 9, Never: true}))
	g.Expect(decided[key("b")].Admitted).To(BeTrue(), "it blocks no job")
}

func TestModelsAreCountedApart(t *testing.T) {
	g := NewWithT(t)
	a100 := Limit{Scope: ScopeUser, Resource: gpu, Model: "A100", Max: 4}
	on := func(c Claimant, model string) Claimant { c.Model = model; return c }
	decided := turns(limits(a100, perUser(12)),
		on(holding("a", 4, 0, 0), "A100"), on(holding("b", 4, 0, 0), "H100"),
		on(asking("c", "alice", 1, 1), "A100"), on(asking("d", "alice", 4, 2), "H100"))
	g.Expect(decided[key("c")].Blocked.Limit).To(Equal(a100))
	g.Expect(decided[key("d")].Admitted).To(BeTrue())
}

func TestOtherWorkloadsCount(t *testing.T) {
	notebook := Use{User: "alice", Holds: gpus(5), Foreign: true}
	for name, c := range map[string]struct {
		ignore   bool
		use      Use
		admitted bool
	}{
		"a notebook":                {use: notebook},
		"a notebook, if not wanted": {use: notebook, ignore: true, admitted: true},
		"our own pods, always":      {use: Use{User: "alice", Holds: gpus(5)}, ignore: true},
		"somebody else's":           {use: Use{User: "bob", Holds: gpus(5), Foreign: true}, admitted: true},
		"without an owner":          {use: Use{Holds: gpus(5), Foreign: true}, admitted: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := Limits{All: []Limit{perUser(8)}, IgnoreOthers: c.ignore}
			decided, _ := AdmitJobs(l, []Claimant{asking("a", "alice", 4, 0)}, []Use{c.use}, nil, now)
			NewWithT(t).Expect(decided[key("a")].Admitted).To(Equal(c.admitted))
		})
	}
}

func TestSurplusGivesWayToWhatWaitsAtTheCap(t *testing.T) {
	g := NewWithT(t)
	older, younger := holding("older", 1, 3, 7), holding("younger", 1, 3, 7)
	younger.Created = now
	decided := turns(limits(perUser(8)), older, younger, asking("c", "alice", 4, 5))
	g.Expect(decided[key("younger")].GiveUp).To(Equal([]types.UID{"younger-2", "younger-1", "younger-0"}), "the youngest first")
	g.Expect(decided[key("older")].GiveUp).To(Equal([]types.UID{"older-2"}), "of each the highest index first")
	g.Expect(decided[key("older")].For).To(Equal(key("c")))
	g.Expect(decided[key("older")].Surplus).To(Equal(int32(2)), "and no job grows meanwhile")
	g.Expect(decided[key("c")].Blocked.Leaving).To(BeTrue())
	g.Expect(decided[key("c")].Admitted).To(BeFalse(), "it starts once they have left")

	for i := range younger.Surplus {
		younger.Surplus[i].Leaving = true
	}
	older.Surplus[2].Leaving = true
	decided = turns(limits(perUser(8)), older, younger, asking("c", "alice", 4, 5))
	g.Expect(decided[key("older")].GiveUp).To(BeEmpty(), "those that are on their way out are enough")
	g.Expect(decided[key("c")].Blocked.Leaving).To(BeTrue())

	older.Surplus, younger.Surplus = older.Surplus[:2], nil
	decided = turns(limits(perUser(8)), older, younger, asking("c", "alice", 4, 5))
	g.Expect(decided[key("c")].Admitted).To(BeTrue())
}

func TestSurplusStaysWhereItWouldNotBeEnough(t *testing.T) {
	g := NewWithT(t)
	decided := turns(limits(perUser(8)), holding("a", 5, 3, 7), asking("b", "alice", 4, 0))
	g.Expect(decided[key("a")].GiveUp).To(BeEmpty())
	held := holding("a", 1, 3, 7)
	held.Surplus[1].Stays = true
	decided = turns(limits(perUser(4)), held, asking("b", "alice", 3, 0))
	g.Expect(decided[key("a")].GiveUp).To(BeEmpty(), "one of them may stay")
}

func TestSurplusGrowsWithinTheLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits  Limits
		surplus int32
	}{
		"of the user":                   {limits(perUser(8)), 6},
		"of the job":                    {limits(Limit{Scope: ScopeJob, Resource: gpu, Max: 5}), 3},
		"of the queue, which is others": {limits(inQueue(2)), 30},
		"that are lower than what runs": {limits(perUser(3)), 2},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(turns(c.limits, holding("a", 2, 2, 30))[key("a")].Surplus).To(Equal(c.surplus))
		})
	}
}

func TestWhatWasAllowedCountsBeforeItIsSeen(t *testing.T) {
	g := NewWithT(t)
	first, second := asking("first", "alice", 8, 1), asking("second", "alice", 8, 0)
	second.Standing = v1beta1.StandingStaff
	decided, grants := AdmitJobs(limits(perUser(8)), []Claimant{first}, nil, nil, now)
	g.Expect(decided[key("first")].Admitted).To(BeTrue())
	decided, grants = AdmitJobs(limits(perUser(8)), []Claimant{first, second}, nil, grants, now.Add(time.Second))
	g.Expect(decided[key("first")].Admitted).To(BeTrue(), "its gang may be there already, unseen")
	g.Expect(decided[key("second")].Admitted).To(BeFalse())
	decided, _ = AdmitJobs(limits(perUser(8)), []Claimant{first, second}, nil, grants, now.Add(Arrival))
	g.Expect(decided[key("second")].Admitted).To(BeTrue(), "one that does not come blocks no job")

	grower := holding("grower", 2, 0, 30)
	decided, grants = AdmitJobs(limits(perUser(8)), []Claimant{grower}, nil, nil, now)
	g.Expect(decided[key("grower")].Surplus).To(Equal(int32(6)))
	decided, _ = AdmitJobs(limits(perUser(8)), []Claimant{grower, asking("b", "alice", 2, 0)}, nil, grants, now.Add(time.Second))
	g.Expect(decided[key("b")].Admitted).To(BeFalse(), "its pods may be there already, unseen")
}

func TestBudgetsHoldUpWhoHasUsedThemUp(t *testing.T) {
	budget := Limit{Scope: ScopeHours, Max: 10 * Hour, Window: 24 * time.Hour}
	for name, c := range map[string]struct {
		spent       map[string]int64
		unread      bool
		accelerated bool
		admitted    bool
		surplus     int32
	}{
		"enough is left":           {map[string]int64{"alice": 10*Hour - 1}, false, true, true, 3},
		"nothing is left":          {map[string]int64{"alice": 10 * Hour}, false, true, false, 0},
		"somebody else's":          {map[string]int64{"bob": 10 * Hour}, false, true, true, 3},
		"a job without devices":    {map[string]int64{"alice": 10 * Hour}, false, false, true, 3},
		"unknown use":              {nil, false, true, true, 3},
		"use that is being read":   {nil, true, true, false, 0},
		"the same without devices": {nil, true, false, true, 3},
		"what has no user is no":   {map[string]int64{"": 10 * Hour}, false, true, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := Limits{Hours: []Limit{budget}, Spent: []map[string]int64{c.spent}, Unread: []bool{c.unread}}
			waits, runs := asking("waits", "alice", 1, 0), holding("runs", 1, 0, 3)
			waits.Accelerated, runs.Accelerated = c.accelerated, c.accelerated
			decided := turns(l, waits, runs)
			g.Expect(decided[key("waits")].Admitted).To(Equal(c.admitted))
			g.Expect(decided[key("runs")].Admitted).To(BeTrue(), "what runs goes on")
			g.Expect(decided[key("runs")].Surplus).To(Equal(c.surplus))
			blocked := decided[key("waits")].Blocked
			switch {
			case c.admitted:
				g.Expect(blocked).To(BeNil())
			case c.unread:
				g.Expect(blocked).To(Equal(&Blocked{Limit: budget, User: "alice", Unread: true}))
				words := "alice may use 10.0 hours of accelerators in 24h (profile ads), and what was used is being read from the " +
					"ledger. The job goes on by itself."
				g.Expect(blocked.DescribeBlock("ads")).To(Equal(words))
				g.Expect(decided[key("runs")].Capped.DescribeCap("ads")).To(Equal(words))
			default:
				g.Expect(blocked).To(Equal(&Blocked{Limit: budget, User: "alice", Used: 10 * Hour}))
			}
		})
	}
}

func TestLimitsOfAProfile(t *testing.T) {
	g := NewWithT(t)
	p := &v1beta1.ResourceQuotaProfile{}
	g.Expect(LimitsOf(nil).HasLimits()).To(BeFalse())
	g.Expect(LimitsOf(p).HasLimits()).To(BeFalse())
	p.Spec.Queue.Capability = corev1.ResourceList{gpu: resource.MustParse("8"), "cpu": resource.MustParse("1500m")}
	p.Spec.Caps = &v1beta1.ProfileCaps{
		PerUser:        []v1beta1.ResourceCap{{Resource: "memory", Max: resource.MustParse("1Gi")}},
		PerJob:         []v1beta1.ResourceCap{{Resource: string(gpu), Model: "A100", Max: resource.MustParse("4")}},
		OtherWorkloads: v1beta1.OtherWorkloadsIgnore,
	}
	p.Spec.Caps.AcceleratorHours = []v1beta1.HourCap{
		{Window: metav1.Duration{Duration: time.Hour}, PerUser: 2, OnExceeded: v1beta1.ExceededQueue},
		{Window: metav1.Duration{Duration: time.Hour}, PerUser: 1, OnExceeded: v1beta1.ExceededNotify},
	}
	hours := []Limit{{Scope: ScopeHours, Max: 2 * Hour, Window: time.Hour}}
	g.Expect(LimitsOf(p)).To(Equal(Limits{IgnoreOthers: true, Hours: hours, All: []Limit{
		{Scope: ScopeJob, Resource: gpu, Model: "A100", Max: 4000},
		{Scope: ScopeUser, Resource: "memory", Max: 1 << 30},
		{Scope: ScopeQueue, Resource: "cpu", Max: 1500},
		{Scope: ScopeQueue, Resource: gpu, Max: 8000},
	}}))
}

func TestStandingOfAMember(t *testing.T) {
	p := &v1beta1.ResourceQuotaProfile{}
	p.Spec.Members = []v1beta1.ProfileMember{
		{Kind: v1beta1.MemberUser, Name: "alice", Standing: v1beta1.StandingIntern}, {Kind: v1beta1.MemberUser, Name: "alice",
			Standing: v1beta1.StandingSenior},
		{Kind: v1beta1.MemberUser, Name: "ivy", Standing: v1beta1.StandingIntern},
		{Kind: v1beta1.MemberGroup, Name: "interns", Standing: v1beta1.StandingIntern}, {Kind: v1beta1.MemberGroup, Name: "leads",
			Standing: v1beta1.StandingSenior},
	}
	for name, c := range map[string]struct {
		owner    ownership.Owner
		standing v1beta1.Standing
	}{
		"of two entries":     {ownership.Owner{User: "alice"}, v1beta1.StandingSenior},
		"of one":             {ownership.Owner{User: "ivy"}, v1beta1.StandingIntern},
		"of none":            {ownership.Owner{User: "bob"}, v1beta1.StandingStaff},
		"by a group":         {ownership.Owner{User: "bob", Groups: []string{"interns"}}, v1beta1.StandingIntern},
		"by two groups":      {ownership.Owner{User: "bob", Groups: []string{"interns", "leads"}}, v1beta1.StandingSenior},
		"by name and group":  {ownership.Owner{User: "ivy", Groups: []string{"leads"}}, v1beta1.StandingSenior},
		"by group and name":  {ownership.Owner{User: "alice", Groups: []string{"interns"}}, v1beta1.StandingSenior},
		"in a group unnamed": {ownership.Owner{User: "bob", Groups: []string{"ml"}}, v1beta1.StandingStaff},
		"no user":            {ownership.Owner{}, v1beta1.StandingStaff},
	} {
		NewWithT(t).Expect(StandingOf(p, c.owner)).To(Equal(c.standing), name)
	}
}

// U3 of the review: what is too little for the job that waits is of use to the one that runs, until it is enough.
func TestSurplusGrowsWhereItKeepsNoGangWaiting(t *testing.T) {
	g := NewWithT(t)
	waits := asking("second", "alice", 4, 0)
	decided := turns(limits(perUser(6)), holding("first", 4, 0, 4), waits)
	g.Expect(decided[key("first")].Surplus).To(Equal(int32(2)), "without the first the second has room, with or without surplus")
	g.Expect(decided[key("second")].Admitted).To(BeFalse())
	decided = turns(limits(perUser(6)), holding("other", 2, 2, 4), waits)
	g.Expect(decided[key("other")].GiveUp).To(HaveLen(2), "here surplus is what keeps it waiting")
	leaving := holding("other", 2, 2, 4)
	leaving.Surplus[0].Leaving, leaving.Surplus[1].Leaving = true, true
	g.Expect(turns(limits(perUser(6)), leaving, waits)[key("other")].Surplus).To(Equal(int32(2)), "and none comes while that leaves")
}

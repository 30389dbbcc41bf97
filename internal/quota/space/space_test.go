package space_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/space"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) string { return now.Add(-d).Format(time.RFC3339) }

const day = 24 * time.Hour

func TestWhatIsDueForAClaim(t *testing.T) {
	seen := ago(time.Hour)
	for name, c := range map[string]struct {
		of   space.Claim
		step space.Step
		why  string
	}{
		"used": {space.Claim{Users: []string{"Pod a"}, Rule: "30d"}, space.StepKeep, "is used"},
		"used again": {
			space.Claim{Users: []string{"Pod a"}, Rule: "30d", UnusedSince: ago(40 * day), UnusedSeen: seen}, space.StepUnmark, "is used",
		},
		"leaving": {
			space.Claim{Leaving: true, Rule: "1h", UnusedSince: ago(day), UnusedSeen: seen}, space.StepKeep,
			"is being deleted",
		},
		"without a rule":          {space.Claim{}, space.StepKeep, "is unused, and has no rule"},
		"without a rule any more": {space.Claim{UnusedSince: ago(day), UnusedSeen: seen}, space.StepUnmark, "has no rule any more"},
		"unseen for long": {
			space.Claim{Rule: "30d", UnusedSince: ago(29 * day), UnusedSeen: ago(37 * time.Hour)}, space.StepMark, "is unused as of now",
		},
		"seen some hours ago": {
			space.Claim{Rule: "30d", UnusedSince: ago(29 * day), UnusedSeen: ago(8 * time.Hour)}, space.StepRenew,
			"is unused since 2026-11-01 12:00 UTC, and kept until 2026-12-01 12:00 UTC",
		},
		"restored with its notes": {
			space.Claim{Rule: "30d", UnusedSince: ago(40 * day), UnusedSeen: seen, Created: now.Add(-day)}, space.StepMark,
			"is unused as of now",
		},
		"while a job misses a version": {
			space.Claim{Rule: "30d", UnusedSince: ago(31 * day), UnusedSeen: seen, Missed: "ElasticTrainingJob ctr names data set " +
				"clicks:1, which the profile does not list"}, space.StepKeep,
			"is unused since 2026-10-30 12:00 UTC; it is kept while ElasticTrainingJob ctr names data set clicks:1, which the profile " +
				"does not list",
		},
		"used until a moment that is yet to come here": {
			space.Claim{Rule: "2d", UnusedSince: ago(3 * day), UnusedSeen: seen, LastUse: now.Add(time.Minute)}, space.StepMark,
			"was used again, until 2026-11-30 12:00 UTC",
		},
		"unused for now": {space.Claim{Rule: "30d"}, space.StepMark, "is unused as of now"},
		"a mark of the future": {
			space.Claim{Rule: "30d", UnusedSince: ago(-day), UnusedSeen: seen}, space.StepMark,
			"is unused as of now",
		},
		"a mark of nothing": {
			space.Claim{Rule: "30d", UnusedSince: "long ago", UnusedSeen: seen}, space.StepMark,
			"is unused as of now",
		},
		"not for long": {
			space.Claim{Rule: "30d", UnusedSince: ago(29 * day), UnusedSeen: seen}, space.StepKeep,
			"is unused since 2026-11-01 12:00 UTC, and kept until 2026-12-01 12:00 UTC",
		},
		"used between two runs": {
			space.Claim{Rule: "2d", UnusedSince: ago(3 * day), UnusedSeen: seen, LastUse: now.Add(-day)}, space.StepMark,
			"was used again, until 2026-11-29 12:00 UTC",
		},
		"used before the mark": {
			space.Claim{Rule: "2d", UnusedSince: ago(3 * day), UnusedSeen: seen, LastUse: now.Add(-4 * day)}, space.StepDelete,
			"is unused since 2026-11-27 12:00 UTC",
		},
		"for so long": {
			space.Claim{Rule: "720h", UnusedSince: ago(30 * day), UnusedSeen: seen}, space.StepDelete,
			"is unused since 2026-10-31 12:00 UTC",
		},
		"a wrong rule": {
			space.Claim{Rule: "soon", UnusedSince: ago(30 * day), UnusedSeen: seen}, space.StepKeep,
			`is unused, and its rule is wrong: tideline.io/prune-unused-after is "soon": write a duration from 1h to 3650d, ` +
				"as in 720h or 30d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.of.DecideStep(now)
			NewWithT(t).Expect([]string{string(d.Step), d.Why}).To(Equal([]string{string(c.step), c.why}))
		})
	}
}

func TestRulesAreDurationsWithinBounds(t *testing.T) {
	g := NewWithT(t)
	for rule, want := range map[string]time.Duration{"1h": time.Hour, "90m": 90 * time.Minute, "1d": day, "3650d": 3650 * day} {
		g.Expect(space.ParseRule(rule)).To(Equal(want))
	}
	for _, rule := range []string{"", "0", "59m", "-30d", "3651d", "99999d", "30", "d", "1e3d", "1w"} {
		_, err := space.ParseRule(rule)
		g.Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf("%q", rule))))
	}
}

func TestAListedClaimWaitsForAllOfItsName(t *testing.T) {
	g := NewWithT(t)
	listed := func(namespace string, since time.Duration) space.Claim {
		return space.Claim{
			Namespace: namespace, Name: "clicks", Rule: "30d", UnusedSince: ago(since), UnusedSeen: ago(time.Hour),
			Versions: []string{"clicks:1"},
		}
	}
	due, early := listed("ads", 31*day), listed("ads-dev", day)
	steps := func(whole bool, claims ...space.Claim) (all []space.Step) {
		for _, d := range space.DecideAll(claims, whole, now) {
			all = append(all, d.Step)
		}
		return all
	}
	g.Expect(steps(true, due)).To(HaveExactElements(space.StepUnlist))
	g.Expect(steps(true, due, listed("ads-dev", 40*day))).To(HaveExactElements(space.StepUnlist, space.StepUnlist))
	g.Expect(steps(true, due, early)).To(HaveExactElements(space.StepKeep, space.StepKeep))
	g.Expect(steps(false, due)).To(HaveExactElements(space.StepKeep), "other namespaces were not read")
	g.Expect(space.DecideAll([]space.Claim{due}, false, now)[0].Why).To(HaveSuffix("name the profile by --profile, because other " +
		"namespaces have that version too"))
	early.Rule = ""
	g.Expect(steps(true, due, early)).To(HaveExactElements(space.StepKeep, space.StepUnmark), "the other has no rule")
	g.Expect(space.DecideAll([]space.Claim{due, early}, true, now)[0].Why).To(Equal("is unused since 2026-10-30 12:00 UTC; the " +
		"profile lists it as clicks:1, and the claim of that name in namespace ads-dev is not due"))
}

// The law of pruning: what somebody may need stays, and so does what has no rule, or whose rule is not over.
func TestWhatMayBeNeededIsNeverTakenAway(t *testing.T) {
	r := rand.New(rand.NewPCG(30, 11))
	taken := 0
	for range 20_000 {
		claims := make([]space.Claim, 1+r.IntN(4))
		for i := range claims {
			c := &claims[i]
			c.Namespace, c.Name = fmt.Sprintf("n%d", i), fmt.Sprintf("c%d", r.IntN(2))
			c.Rule = []string{"", "soon", "1h", "2d", "30d"}[r.IntN(5)]
			c.UnusedSince = []string{"", "x", ago(time.Minute), ago(3 * day), ago(60 * day), ago(-day)}[r.IntN(6)]
			c.UnusedSeen = []string{"", ago(time.Minute), ago(10 * time.Hour), ago(40 * time.Hour), ago(-day)}[r.IntN(5)]
			c.Created = now.Add(-time.Duration(r.IntN(100)) * day)
			c.Missed = []string{"", "", "a job misses one"}[r.IntN(3)]
			c.Leaving = r.IntN(8) == 0
			if r.IntN(3) == 0 {
				c.Users = []string{"ElasticTrainingJob ctr"}
			}
			if r.IntN(3) == 0 {
				c.LastUse = now.Add(-time.Duration(r.IntN(100)-5) * day)
			}
			if r.IntN(2) == 0 {
				c.Versions = []string{"clicks:1"}
			}
		}
		for i, d := range space.DecideAll(claims, r.IntN(2) == 0, now) {
			if d.Step != space.StepDelete && d.Step != space.StepUnlist {
				continue
			}
			taken++
			c := claims[i]
			since, err := time.Parse(time.RFC3339, c.UnusedSince)
			after, wrong := space.ParseRule(c.Rule)
			last := since
			if c.LastUse.After(last) {
				last = c.LastUse
			}
			if len(c.Users) > 0 || err != nil || wrong != nil || c.Leaving || c.Missed != "" || since.Before(c.Created) ||
				now.Sub(last) < after ||
				d.Step == space.StepDelete && len(c.Versions) > 0 {
				t.Fatalf("%s of %+v", d.Step, c)
			}
		}
	}
	NewWithT(t).Expect(taken).To(BeNumerically(">", 300), "the law was tried")
}

func TestVersionsLeaveTheListAndTheOthersStay(t *testing.T) {
	g := NewWithT(t)
	sets := []v1beta1.ProfileDataSet{
		{Name: "words", Versions: []v1beta1.DataVersion{{Version: "1", Claim: "a", Folder: "words"}}},
		{Name: "clicks", Versions: []v1beta1.DataVersion{{Version: "1"}, {Version: "2"}, {Version: "3"}}},
	}
	g.Expect(space.UnlistPaths(sets, []string{"clicks:1", "clicks:3", "words:1"})).To(Equal([]string{
		"/dataSets/1/versions/2", "/dataSets/1/versions/0", "/dataSets/0",
	}), "the last first, so that the others keep their places")
	g.Expect(space.UnlistPaths(sets, []string{"clicks:9"})).To(BeEmpty())
}

func TestSpaceIsAddedUp(t *testing.T) {
	g := NewWithT(t)
	size := resource.MustParse("1Gi")
	sums := space.SumClaims([]space.Claim{
		{Size: size, Users: []string{"Pod a"}}, {Size: size, Rule: "30d"}, {Size: size}, {Size: size, Rule: "soon"},
	})
	g.Expect([]int{sums.All.Claims, sums.Used.Claims, sums.Kept.Claims}).To(Equal([]int{4, 1, 2}))
	g.Expect(sums.All.Space.String()).To(Equal("4Gi"))
	g.Expect(sums.Kept.Space.String()).To(Equal("2Gi"))
}

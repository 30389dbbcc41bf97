package admission

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestWhatKeepsSurplusFromGrowing(t *testing.T) {
	job := func(c Claimant, core int64) Claimant {
		c.Core, c.Worker, c.Accelerated = gpus(1000*core), gpus(1000), true
		return c
	}
	perJob := Limit{Scope: ScopeJob, Resource: gpu, Max: 5000}
	budget := Limit{Scope: ScopeHours, Max: 10 * Hour, Window: 24 * time.Hour}
	for name, c := range map[string]struct {
		limits Limits
		others []Claimant
		want   *Blocked
		says   string
	}{
		"nothing": {limits: limits(perUser(8000))},
		"a limit of the user": {
			limits: limits(perUser(6000)), want: &Blocked{Limit: perUser(6000), User: "alice", Used: 6000},
			says: "alice may hold at most 6 nvidia.com/gpu (profile ads) and holds 6 nvidia.com/gpu. It grows by itself when enough " +
				"is released.",
		},
		"another job of the user, for which surplus leaves": {
			limits: limits(perUser(7000)), others: []Claimant{job(asking("b", "alice", 0, 0), 2), job(holding("c", 0, 1, 1), 1)},
			want: &Blocked{Limit: perUser(7000), User: "alice", Used: 6000, Behind: key("b")},
			says: "alice may hold at most 7 nvidia.com/gpu (profile ads) and holds 6 nvidia.com/gpu; ads/b waits for the rest.",
		},
		"the lowest of two limits": {
			limits: limits(perUser(6000), perJob), want: &Blocked{Limit: perJob, User: "alice", Used: 5000},
			says: "a job may hold at most 5 nvidia.com/gpu (profile ads), and this one holds 5 nvidia.com/gpu.",
		},
		"a budget": {
			limits: Limits{All: []Limit{perUser(6000)}, Hours: []Limit{budget}, Spent: []map[string]int64{{"alice": 11 * Hour}}},
			want:   &Blocked{Limit: budget, User: "alice", Used: 11 * Hour},
			says: "alice has used up 10.0 hours of accelerators in 24h (profile ads). It grows by itself when enough of that use is " +
				"older than 24h.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			capped := turns(c.limits, append([]Claimant{job(holding("a", 0, 0, 4), 4)}, c.others...)...)[key("a")].Capped
			g.Expect(capped).To(Equal(c.want))
			if capped != nil {
				g.Expect(capped.DescribeCap("ads")).To(Equal(c.says))
			}
		})
	}
}

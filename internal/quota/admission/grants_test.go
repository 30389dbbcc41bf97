package admission

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// A cap for one lets one of two jobs run, however long the reconcile takes that acts on the first turn, and the caches until they
// have seen what it wrote.
func TestATurnIsNotGivenAwayWhileAReconcileActsOnIt(t *testing.T) {
	for name, c := range map[string]struct {
		// reconciles at work from and to after the turn was given.
		reconciles [][2]time.Duration
		// passed is after how long the other has its turn.
		passed time.Duration
	}{
		"none acts":                    {nil, Arrival},
		"one that began with the turn": {[][2]time.Duration{{9 * time.Second, 40 * time.Second}}, 49 * time.Second},
		"one for minutes":              {[][2]time.Duration{{0, 5 * time.Minute}}, 309 * time.Second},
		"one that was told of it no more": {[][2]time.Duration{
			{9 * time.Second, 20 * time.Second}, {21 * time.Second, time.Minute},
		}, 29 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			first, second := asking("first", "alice", 8, 0), asking("second", "alice", 8, 1)
			var grants Grants
			for after := time.Duration(0); after <= c.passed; after += time.Second {
				first.Acting = time.Time{}
				for _, r := range c.reconciles {
					if r[0] <= after && after < r[1] {
						first.Acting = now.Add(r[0])
					}
				}
				var decided map[Key]Turn
				decided, grants = AdmitJobs(limits(perUser(8)), []Claimant{first, second}, nil, grants, now.Add(after))
				g.Expect(decided[key("first")].Admitted).To(Equal(after < Arrival), "the first is told of its turn, after %s", after)
				g.Expect(decided[key("second")].Admitted).To(Equal(after == c.passed), "the other has its turn, after %s", after)
			}
		})
	}
}

func TestSurplusIsNotGivenAwayWhileAReconcileCreatesIt(t *testing.T) {
	g := NewWithT(t)
	grows, waits := holding("grows", 1, 0, 7), holding("waits", 1, 0, 7)
	_, grants := AdmitJobs(limits(perUser(8)), []Claimant{grows}, nil, nil, now)
	grows.Surplus, grows.Acting = []Surplus{{UID: "1", Index: 1}}, now
	for at := now.Add(time.Second); at.Before(now.Add(3 * Arrival)); at = at.Add(time.Second) {
		var decided map[Key]Turn
		decided, grants = AdmitJobs(limits(perUser(9)), []Claimant{grows, waits}, nil, grants, at)
		g.Expect(decided[key("waits")].Surplus).To(BeZero(), "six of seven are still to come")
	}
}

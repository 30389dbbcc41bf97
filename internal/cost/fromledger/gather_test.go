package fromledger

import (
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const prices = `{currency: CNY, prices: [{validFrom: "2026-01-01", cpuCoreHour: "0", memoryGiBHour: "0",
	accelerators: [{resource: nvidia.com/gpu, hourly: "10"}]}]}`

// A gang of two that was preempted after it had trained for three hours, the last of them with one more, and had saved itself
// after the first.
func TestWhatWasLostMeasuredAndWaitedFor(t *testing.T) {
	g := NewWithT(t)
	l, err := ledger.Open(t.Context(), ledger.Options{File: filepath.Join(t.TempDir(), "ledger.db")})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	midnight := time.Date(2026, time.November, 17, 0, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return midnight.Add(time.Duration(n) * time.Hour) }
	pod := func(name, role, user, task, run string, begin, end int) ledger.Stay {
		return ledger.Stay{
			Pod: ledger.Pod{
				UID: name, Namespace: "ads", Name: name, Profile: "ads", User: user, Kind: v1beta1.ElasticTrainingJobKind, Task: task,
				Run: run, Role: role, Resources: ledger.Resources{"nvidia.com/gpu": 1000},
			},
			Begin: hour(begin), End: hour(end), Final: true, Outcome: ledger.Deleted,
		}
	}
	decision := func(kind, name, user, task, attempt string, when int, figures ...string) ledger.Decision {
		d := ledger.Decision{
			ID: attempt, At: hour(when), Kind: kind, Namespace: "ads", Name: name, UID: name, Attempt: attempt,
			Figures: map[string]string{
				decisionlog.Object: v1beta1.ElasticTrainingJobKind, decisionlog.Profile: "ads", decisionlog.User: user,
				decisionlog.Task: task,
			},
		}
		for i := 0; i+1 < len(figures); i += 2 {
			d.Figures[figures[i]] = figures[i+1]
		}
		return d
	}
	stopped := decision(decisionlog.Stopped, "ctr-7", "alice", "ctr", "1-1", 4, decisionlog.LostSince, hour(2).Format(time.RFC3339))
	stopped.Other = "ads/launch-1"
	orphan := decision(decisionlog.Stopped, "gone", "eve", "gone", "1-1", 5, decisionlog.LostSince, hour(4).Format(time.RFC3339))
	orphan.Other = "rec/unknown"
	g.Expect(l.RecordEntries(t.Context(), ledger.Entries{
		Stays: []ledger.Stay{
			pod("ctr-7-0", "core", "alice", "ctr", "1-1", 1, 4), pod("ctr-7-1", "core", "alice", "ctr", "1-1", 1, 4),
			pod("ctr-7-2", v1beta1.PartSurplus, "alice", "ctr", "1-1", 3, 4), pod("launch-1-0", "core", "bob", "launch", "1-4", 4, 6),
		},
		Decisions: []ledger.Decision{
			stopped, orphan, decision(decisionlog.Waited, "launch-1", "bob", "launch", "1-4", 3),
			decision(decisionlog.Ran, "launch-1", "bob", "launch", "1-4", 4, decisionlog.WaitedSeconds, "3600"),
		},
		Rooms: []ledger.FreeRoom{{At: hour(1), Free: 4, Unusable: 0.5, Gangs: 2}, {At: hour(30), Free: 9}},
	})).To(Succeed())
	list, err := cost.ParsePrices([]byte(prices))
	g.Expect(err).NotTo(HaveOccurred())
	of := func(profiles ...string) *cost.Report {
		in := &cost.Input{Period: cost.PeriodUntil(hour(24), 24*time.Hour, time.UTC), Prices: list}
		g.Expect(LoadInput(t.Context(), l, in, profiles, config.DefaultTiers())).To(Succeed())
		return cost.ComputeReport(in)
	}
	computed := of()
	g.Expect(computed.Total.Cost.String()).To(Equal("90"))
	g.Expect(computed.Lost.Preemptions.String()).To(Equal("50"), "two hours of two, and one of the third")
	g.Expect(computed.Lost.Restarts.String()).To(Equal("0"))
	g.Expect(computed.Lost.Incidents).To(BeEquivalentTo(2), "of one nothing is known but that it was")
	for user, costs := range map[string]string{"alice": "20", "bob": "70"} {
		g.Expect(computed.By[cost.ByUser]).To(ContainElement(And(HaveField("Key.User", user),
			WithTransform(func(row cost.Row) string { return row.Cost.String() }, Equal(costs)))), "who made it stop pays")
	}
	g.Expect(computed.Waits).To(Equal(cost.Waits{Gangs: 1, Median: time.Hour, Longest: time.Hour, LongestOf: "ads/launch-1"}))
	g.Expect(*computed.Room).To(Equal(cost.Room{
		Free: 4, Unusable: cost.Ratio{Value: 0.5, Known: true},
		Mix: "gangs like those of the jobs and merges that there were (2 on average, at 1 times)",
	}))
	other := of("rec")
	g.Expect(other.Waits.Gangs+other.Lost.Incidents).To(BeZero(), "of another team")
}

// A report of a time before the ledger says from when it knows; one of a time after says nothing.
func TestRolesOfWhatWasHeld(t *testing.T) {
	for name, c := range map[string]struct {
		role  string
		first bool
		want  sizing.Role
	}{
		"worker 0":                     {v1beta1.PartCore, true, sizing.Master},
		"one that leads":               {"launcher", true, sizing.Master},
		"a worker":                     {v1beta1.PartCore, false, sizing.Worker},
		"surplus":                      {v1beta1.PartSurplus, false, sizing.Worker},
		"a server":                     {"ps", false, "ps"},
		"of before a ledger had parts": {"", false, sizing.Worker},
	} {
		pod := ledger.Pod{Kind: v1beta1.ElasticTrainingJobKind, Role: c.role}
		NewWithT(t).Expect(heldOf(&ledger.Held{Pod: pod, First: c.first}).Role).To(Equal(c.want), name)
	}
}

func TestWhatIsBeforeTheLedgerIsUnknown(t *testing.T) {
	g := NewWithT(t)
	begun := time.Date(2026, time.November, 17, 12, 30, 0, 0, time.UTC)
	l, err := ledger.Open(t.Context(), ledger.Options{
		File: filepath.Join(t.TempDir(), "ledger.db"), Clock: func() time.Time { return begun },
	})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	for from, noted := range map[time.Time]bool{begun.Add(-time.Hour): true, begun: false} {
		in := &cost.Input{Period: cost.Period{From: from, To: begun.Add(24 * time.Hour)}}
		g.Expect(LoadInput(t.Context(), l, in, nil, config.DefaultTiers())).To(Succeed())
		if noted {
			g.Expect(in.Notes).To(ConsistOf(HavePrefix("What ran before 2026-11-17 12:30 UTC is unknown, because the ledger began then")))
		} else {
			g.Expect(in.Notes).To(BeEmpty())
		}
	}
}

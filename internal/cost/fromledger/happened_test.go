package fromledger

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

// at is a time in November 2026.
func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", "2026-11-"+text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestWhatDecisionsSayOfAPeriod(t *testing.T) {
	g := NewWithT(t)
	told := func(when, kind string, figures ...string) *ledger.Decision {
		d := &ledger.Decision{
			At: at(when), Kind: kind, Namespace: "ads", Name: "ctr-2", UID: "u", Attempt: "1-1",
			Figures: map[string]string{
				decisionlog.Object: "ElasticTrainingJob", decisionlog.Profile: "ads", decisionlog.User: "alice", decisionlog.Task: "ctr",
			},
		}
		for i := 0; i+1 < len(figures); i += 2 {
			d.Figures[figures[i]] = figures[i+1]
		}
		return d
	}
	since := func(when string) []string { return []string{decisionlog.LostSince, at(when).Format(time.RFC3339)} }
	preempted := told("04 16:00", decisionlog.Stopped, since("04 10:00")...)
	preempted.Other = "rec/launch"
	again := told("04 20:00", decisionlog.Restarted, since("04 18:00")...)
	again.Attempt = "2-9"
	var h happened
	for _, d := range []*ledger.Decision{
		told("04 10:00", decisionlog.Ran, decisionlog.WaitedSeconds, "90"),
		told("04 10:00", decisionlog.Ran, decisionlog.WaitedSeconds, "-1"), told("04 10:00", decisionlog.Ran),
		told("04 12:00", decisionlog.Restarted, since("04 10:00")...), told("04 13:00", decisionlog.Restarted),
		told("04 14:00", decisionlog.Restarted, since("04 13:30")...), preempted, again,
	} {
		h.addDecision(d)
	}
	g.Expect(h.waits).To(Equal([]cost.Wait{{Job: "ads/ctr-2", Time: 90 * time.Second}}))
	of := cost.Owner{Team: "ads", User: "alice", Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr"}
	g.Expect(h.stops).To(Equal([]stop{
		{of: of, run: "1-1", since: at("04 10:00"), until: at("04 12:00")},
		{of: of, run: "1-1", since: at("04 13:30"), until: at("04 14:00")},
		{of: of, run: "1-1", by: "rec/launch", since: at("04 14:00"), until: at("04 16:00")},
		{of: of, run: "2-9", since: at("04 18:00"), until: at("04 20:00")},
	}), "what was lost is not lost again")
}

func TestLossIsOfThePodsThatWereThere(t *testing.T) {
	g := NewWithT(t)
	s := &stop{of: cost.Owner{User: "of the decision", Task: "ctr"}, since: at("04 09:30"), until: at("04 10:30")}
	by := &cost.Owner{User: "bob"}
	g.Expect(lossOf(s, nil, by)).To(Equal(cost.Loss{Of: s.of, For: by}))
	pod := ledger.Stay{
		Pod: ledger.Pod{
			Profile: "ads", User: "alice", Model: "A100", Role: v1beta1.PartSurplus, Resources: ledger.Resources{"cpu": 1000},
		},
		Begin: at("04 10:00"), End: at("04 11:00"),
	}
	core := pod
	of := cost.Resources{"cpu": 1000}
	core.Role, core.Begin = "core", at("04 09:00")
	late := pod
	late.Begin = at("04 10:30")
	g.Expect(lossOf(s, []ledger.Stay{pod, core, late}, nil)).To(Equal(cost.Loss{
		Of: cost.Owner{Team: "ads", User: "alice", Task: "ctr"},
		Pods: []cost.LostPods{
			{Number: 1, Since: at("04 10:00"), Until: at("04 10:30"), Surplus: true, Model: "A100", Resources: of},
			{Number: 1, Since: at("04 09:30"), Until: at("04 10:30"), Model: "A100", Resources: of},
		},
	}))
}

func TestWhatWasMeasured(t *testing.T) {
	g := NewWithT(t)
	rooms := []ledger.FreeRoom{{At: at("04 10:00"), Free: 7, Unusable: 0.5, Gangs: 4}, {At: at("04 10:10"), Free: 3}}
	measured, mix := measuredOf(rooms)
	g.Expect(measured).To(Equal([]cost.Measured{
		{At: at("04 10:00"), Free: 7, Unusable: cost.Ratio{Value: 0.5, Known: true}}, {At: at("04 10:10"), Free: 3},
	}))
	g.Expect(mix).To(Equal("gangs like those of the jobs and merges that there were (2 on average, at 2 times)"))
	_, mix = measuredOf(rooms[1:])
	g.Expect(mix).To(BeEmpty())
}

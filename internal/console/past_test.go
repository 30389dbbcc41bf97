package console

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// pastOfTwo is a past of two pods, one of which gave way after half an hour.
func pastOfTwo(begin time.Time) *view.Past {
	half := begin.Add(30 * time.Minute)
	return &view.Past{
		Kept: true, From: begin,
		Stays: []view.Stay{
			{Begin: begin, End: begin.Add(time.Hour), Accelerators: 8000}, {Begin: begin, End: half, Accelerators: 8000},
		},
		Happenings: []view.Happening{
			{At: begin, Kind: "Ran", Message: "The core of 1 began to run."},
			{At: half, Kind: "GaveWay", Reason: "PreemptionByScheduler", Message: "Surplus left for ads/bert."},
		},
	}
}

func TestStoryOfATraining(t *testing.T) {
	g := NewWithT(t)
	now := time.Now().Truncate(time.Second)
	begin := now.Add(-2 * time.Hour)
	l, open := keptLedger(t)
	j := job("ads", "llama", "")
	j.UID, j.CreationTimestamp = "new", metav1.NewTime(begin)
	j.Status.Attempt = &v1beta1.AttemptStatus{Number: 1, StartTime: metav1.NewTime(begin)}
	pod := func(namespace, name string, from, to time.Time, final bool) ledger.Stay {
		s := ledger.Stay{Begin: from, End: to, Final: final, Pod: ledger.Pod{
			UID: namespace + name, Namespace: namespace, Name: name, Node: "n", Kind: v1beta1.ElasticTrainingJobKind, Task: "llama",
			Run: j.Status.Attempt.ID(), Role: "core", Resources: ledger.Resources{"nvidia.com/gpu": 8000, "cpu": 1000},
		}}
		if final {
			s.Outcome = ledger.Deleted
		}
		return s
	}
	decision := func(uid, kind, message string, at time.Time) ledger.Decision {
		return ledger.Decision{At: at, Kind: kind, Namespace: "ads", Name: "llama", UID: uid, Message: message}
	}
	g.Expect(l.RecordEntries(t.Context(), ledger.Entries{
		Stays: []ledger.Stay{
			pod("ads", "llama-worker-0", begin, now.Add(-time.Minute), false),
			pod("ads", "llama-worker-1", begin, begin.Add(time.Hour), true),
			pod("ads", "other-worker-0", begin, now, false), pod("ads", "llama-2-worker-0", begin, now, false),
			pod("rec", "llama-worker-0", begin, now, false),
		},
		Decisions: []ledger.Decision{
			decision("new", "GaveWay", "Surplus left for ads/bert (PreemptionByScheduler).", begin.Add(time.Hour)),
			decision("new", "Waited", "Nothing was free.", begin),
			decision("old", "Ended", "An earlier one failed.", begin.Add(-time.Hour)),
		},
	})).To(Succeed())

	h := &historian{open: open, cfg: config.DefaultConfiguration(), log: logr.Discard()}
	past := h.past(t.Context(), j, now)
	g.Expect(past.Stays).To(ConsistOf(view.Stay{Begin: begin.UTC(), End: now, Accelerators: 8000},
		view.Stay{Begin: begin.UTC(), End: begin.Add(time.Hour).UTC(), Accelerators: 8000}))
	page := view.NewJob(j, past, &view.Sight{AllJobs: true, AllMerges: true}, now)
	var story []string
	for _, row := range page.Story {
		story = append(story, row.What+": "+row.Words)
	}
	g.Expect(story).To(Equal([]string{
		"gave way: Surplus left for ads/bert (PreemptionByScheduler).", "waits: Nothing was free.",
	}), "the last first, and nothing of an earlier training by that name")
	g.Expect(page.Figures).To(ContainElement(HaveField("Value", "24")), "two hours of 8 and one hour of 8 accelerators")
	g.Expect(page.Sizes.Line).To(Equal("0,120 0,0 500,0 500,60 1000,60"))
	g.Expect(page.Limits).To(BeEmpty())

	s := serve(&view.Model{Jobs: []*v1beta1.ElasticTrainingJob{j}}, everything)
	s.past = h.past
	g.Expect(get(s, "/console/jobs/ads/llama", "good").Body.String()).To(And(ContainSubstring("Surplus left for ads/bert"),
		ContainSubstring("1 from "), ContainSubstring(">24<")))
}

func TestStoryWithoutALedger(t *testing.T) {
	g := NewWithT(t)
	j := job("ads", "llama", "no room")
	j.Status.RunningSince, j.Status.Attempt = &metav1.Time{Time: time.Now()}, &v1beta1.AttemptStatus{Number: 1, MinReplicas: 2}
	for limit, open := range map[string]OpenLedger{
		"keeps no ledger":   nil,
		"could not be read": func(context.Context) (*ledger.Ledger, error) { return nil, errors.New("locked") },
	} {
		h := &historian{open: open, cfg: config.DefaultConfiguration(), log: logr.Discard()}
		page := view.NewJob(j, h.past(t.Context(), j, time.Now()), &view.Sight{AllJobs: true}, time.Now())
		g.Expect(page.Limits).To(ConsistOf(ContainSubstring(limit)))
		g.Expect(page.Story).To(ContainElement(HaveField("What", "began to run")), "what the status still tells")
	}
}

func keptLedger(t *testing.T) (*ledger.Ledger, OpenLedger) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ledger.db")
	open := func(ctx context.Context) (*ledger.Ledger, error) { return ledger.Open(ctx, ledger.Options{File: file}) }
	l, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, open
}

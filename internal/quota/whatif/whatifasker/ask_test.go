package whatifasker

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

const gpu = "nvidia.com/gpu"

// noon is now.
var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func ago(hours float64) time.Time { return noon.Add(-time.Duration(hours * float64(time.Hour))) }

// stay is of worker i of an attempt of a training of namespace ads, with a GPU.
func stay(job, attempt, role string, i string, begin, end float64) ledger.Stay {
	return ledger.Stay{
		Pod: ledger.Pod{
			UID: job + attempt + i, Namespace: "ads", Name: job + "-worker-" + i, Node: "a", Profile: "ads", Queue: "ads", User: "alice",
			Tier: "exploratory", Kind: v1beta1.ElasticTrainingJobKind, Task: job, Run: attempt, Role: role,
			Resources: ledger.Resources{gpu: 1000, "memory": 1024},
		},
		Begin: ago(begin), End: ago(end), Final: true, Outcome: ledger.Succeeded,
	}
}

// began is the decision that the core of an attempt ran after it had waited for so many hours.
func began(job, attempt, workers string, at, waited float64) ledger.Decision {
	return ledger.Decision{
		At: ago(at), Kind: decisionlog.Ran, Namespace: "ads", Name: job, UID: job, Attempt: attempt, ID: attempt,
		Figures: map[string]string{
			decisionlog.Workers:       workers,
			decisionlog.WaitedSeconds: strconv.Itoa(int(waited * 3600)),
		},
	}
}

func TestThePastIsReadOfTheLedger(t *testing.T) {
	g := NewWithT(t)
	notebook := stay("x", "", "", "0", 5, 1)
	notebook.Kind, notebook.Name, notebook.UID, notebook.Run = "Notebook", "n", "n", ""
	merge := notebook
	merge.Kind, merge.UID = v1beta1.MergeJobKind, "m"
	stays := []ledger.Stay{
		stay("old", "1-1", v1beta1.PartCore, "0", 30, 20),
		stay("a", "1-1", v1beta1.PartCore, "0", 10, 8), stay("a", "1-1", v1beta1.PartCore, "1", 10, 2),
		stay("a", "1-1", v1beta1.PartCore, "0b", 8, 2), stay("a", "1-1", v1beta1.PartSurplus, "2", 9, 2),
		notebook, merge,
	}
	// Another pod of worker 0 took the place of the first.
	stays[3].Name = "a-worker-0"
	short := []ledger.Stay{stay("s", "1-1", v1beta1.PartCore, "0", 1, 1), stay("s", "1-1", v1beta1.PartCore, "1", 1, 1)}
	still := stay("r", "1-1", v1beta1.PartCore, "0", 0.5, 0.4)
	still.Final = false
	stays = append(append(stays, short...), still)
	ofA := began("a", "1-1", "2..8", 10, 3)
	past := newPast(stays, map[attempt]start{{"ads", "a", "1-1"}: startOf(&ofA)}, ago(24), noon)
	g.Expect(past.Runs).To(HaveLen(4))
	g.Expect(past.Runs[2].Core).To(HaveLen(2), "two that were gone within a second were there at once")
	g.Expect([]any{past.Runs[3].Ended, past.Runs[3].Ongoing}).To(Equal([]any{noon, true}), "one that was not seen to end goes on")
	g.Expect(past.Runs[3].Known).To(BeFalse(), "how long it waited is not on record")
	old, a := past.Runs[0], past.Runs[1]
	g.Expect(old.Began).To(BeTrue(), "it ran when the time began")
	g.Expect([]time.Time{old.Came, old.Started, old.Ended}).To(Equal([]time.Time{ago(24), ago(24), ago(20)}))
	g.Expect([]bool{a.Began, a.Ongoing, a.Known}).To(Equal([]bool{false, false, true}))
	g.Expect([]time.Time{a.Came, a.Started, a.Ended}).To(Equal([]time.Time{ago(13), ago(10), ago(2)}))
	g.Expect(a.Core).To(HaveLen(2), "its core, without surplus, and each worker once")
	g.Expect(a.Core[0]).To(Equal(admission.MilliAmounts{gpu: 1000, corev1.ResourceMemory: 1 << 30}))
	g.Expect([]string{a.Namespace, a.Name, a.User, a.Tier, a.Queue, a.Profile}).To(Equal(
		[]string{"ads", "a/1-1", "alice", "exploratory", "ads", "ads"}))
	g.Expect(past.Others).To(HaveLen(2))
	g.Expect(past.Others[0].Merging).NotTo(Equal(past.Others[1].Merging))
}

// asker has a ledger in which two trainings of one user ran side by side, a node of 8 GPUs, and profile ads.
func asker(t *testing.T) *Asker {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ledger.db")
	open := func(ctx context.Context) (*ledger.Ledger, error) {
		return ledger.Open(ctx, ledger.Options{File: file, Clock: func() time.Time { return ago(400) }})
	}
	l, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(l.RecordEntries(t.Context(), ledger.Entries{
		Stays: []ledger.Stay{
			stay("a", "1-1", v1beta1.PartCore, "0", 10, 6), stay("a", "1-1", v1beta1.PartCore, "1", 10, 6),
			stay("b", "1-2", v1beta1.PartCore, "0", 9, 7), stay("b", "1-2", v1beta1.PartCore, "1", 9, 7),
		},
		Decisions: []ledger.Decision{began("a", "1-1", "2..2", 10, 0), began("b", "1-2", "2..2", 9, 0)},
	}), l.Close())
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1beta1.AddToScheme, gang.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	ads := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ads", Labels: map[string]string{"team": "ads"}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(ads, ofAds()).Build()
	cfg := config.DefaultConfiguration()
	cfg.Ledger.File = file
	nodes := func(context.Context) ([]capacity.Node, error) {
		return []capacity.Node{{Name: "a", Allocatable: capacity.Amounts{gpu: 8, corev1.ResourcePods: 110}}}, nil
	}
	return NewAsker(c, cfg, open, nodes, func() time.Time { return noon })
}

func ofAds() *v1beta1.ResourceQuotaProfile {
	p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}
	p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "ads"}
	return p
}

// capped lets each user hold two GPUs.
func capped() *v1beta1.ResourceQuotaProfile {
	p := ofAds()
	p.Spec.Caps = &v1beta1.ProfileCaps{PerUser: []v1beta1.ResourceCap{{Resource: gpu, Max: resource.MustParse("2")}}}
	return p
}

func TestWhatAChangeWouldHaveDoneIsTold(t *testing.T) {
	g := NewWithT(t)
	said := asker(t).TellChange(t.Context(), capped(), 24*time.Hour, true)
	g.Expect(said).To(HaveLen(3))
	g.Expect(said[0]).To(Equal("Played again: the last 24h, with 2 attempts of trainings that came and 0 attempts that ran " +
		"already, on 1 node of today. The median wait with the profiles as they are is less than a minute; the true one was less " +
		"than a minute."))
	g.Expect(said[1]).To(Equal("ads, 2 attempts: median wait less than a minute; 99th percentile 3h instead of less than a minute" +
		"; cores hold 12 hours of accelerators."))
}

func TestWhyWhatAChangeWouldHaveDoneIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Asker)
		says  string
	}{
		"no ledger": {func(a *Asker) { a.config.Ledger.File = "" }, "the operator keeps no ledger"},
		"does not lead": {func(a *Asker) {
			a.nodes = func(context.Context) ([]capacity.Node, error) { return nil, arbiter.ErrNotJudging }
		}, "does not lead"},
		"the ledger is away": {func(a *Asker) {
			a.open = func(context.Context) (*ledger.Ledger, error) { return nil, errors.New("it is away") }
		}, "it is away"},
		"no time": {func(a *Asker) {
			open := a.open
			a.open = func(ctx context.Context) (*ledger.Ledger, error) {
				<-ctx.Done()
				return open(context.WithoutCancel(ctx))
			}
		}, "takes too long: ask for a shorter time"},
	} {
		t.Run(name, func(t *testing.T) {
			a := asker(t)
			c.spoil(a)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			NewWithT(t).Expect(a.TellChange(ctx, capped(), 24*time.Hour, true)).To(ConsistOf(And(
				HavePrefix("What profile ads would have changed is not known: "), ContainSubstring(c.says))))
		})
	}
}

func TestOneIsAnsweredAtATime(t *testing.T) {
	g, a := NewWithT(t), asker(t)
	g.Expect(a.limiter.DoWork(a.now, func() {
		g.Expect(a.TellChange(t.Context(), capped(), 24*time.Hour, true)).To(ConsistOf(ContainSubstring("ask again in a minute")))
	})).To(BeTrue())
}

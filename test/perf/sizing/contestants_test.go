package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// steady was seen using the same all week, whole days long, and asks for ten times of it.
func steady(tier string, use amounts) observed {
	t, _ := config.DefaultTiers().FindTier(tier)
	day := seen{
		slices.Repeat([]float64{use.cpu}, slotsPerDay), make([]bool, slotsPerDay),
		slices.Repeat([]float64{use.memory}, slotsPerDay), make([]bool, slotsPerDay),
	}
	return observed{t, amounts{10 * use.cpu, 10 * use.memory}, slices.Repeat([]seen{day}, week)}
}

// between fails unless both amounts are in their bounds, in multiples of what was used.
func between(t *testing.T, who string, got, used amounts, least, most float64) {
	t.Helper()
	for _, ratio := range []float64{got.cpu / used.cpu, got.memory / used.memory} {
		if ratio < least || ratio > most {
			t.Errorf("%s recommends %.4f of what was used, want %.3f to %.3f", who, ratio, least, most)
		}
	}
}

// For constant use all contestants are as documented: use × margin, and up to a bucket of 5 % more.
func TestConstantUse(t *testing.T) {
	used := amounts{1.7, 3 * gib}
	target, upper := byVPA(steady("main-traffic", used))
	between(t, "VPA", target, used, 1.15, 1.15*1.05+1e-6)
	// A week's samples each minute make its multiplier 1 + 1/7, of all but the last minute.
	between(t, "VPA's upper bound", upper, amounts{target.cpu * 8 / 7, target.memory * 8 / 7}, 0.999, 1.001) // in whole millicores
	simple := byKRR(steady("main-traffic", used))
	between(t, "KRR", amounts{simple.cpu, simple.memory / 1.15}, used, 1-1e-9, 1+1e-9)
	for tier, buffer := range map[string]amounts{
		"exploratory": {1.25, 1.15}, "small-traffic": {1.54, 1.30}, "main-traffic": {2, 1.5},
	} {
		got := byTideline(steady(tier, used))
		between(t, "Tideline", amounts{got.cpu / buffer.cpu, used.memory}, used, 1, 1.05)
		between(t, "Tideline", amounts{used.cpu, got.memory / buffer.memory}, used, 1, 1.001)
	}
}

// Half of the weight of what VPA sees is of the last day.
func TestVPAForgets(t *testing.T) {
	o := steady("exploratory", amounts{1, gib})
	for slot := range o.runs[week-1].cpu {
		o.runs[week-1].cpu = slices.Clone(o.runs[week-1].cpu)
		o.runs[week-1].cpu[slot] = 4
	}
	if target, _ := byVPA(o); target.cpu < 4*1.15 || target.cpu > 4*1.15*1.06 {
		t.Errorf("VPA recommends %.2f processors after a day in which 4 were used", target.cpu)
	}
	for slot := range o.runs[0].cpu {
		o.runs[0].cpu = o.runs[week-1].cpu
		o.runs[0].cpu[slot] = 4
	}
	o.runs[week-1] = o.runs[1]
	if target, _ := byVPA(o); target.cpu > 1.15*1.06 {
		t.Errorf("VPA recommends %.2f processors six days after 4 were used", target.cpu)
	}
}

// A kill raises memory by a fifth, and each run has a peak of its own.
func TestVPAIsToldOfKills(t *testing.T) {
	o := steady("exploratory", amounts{1, 8 * gib})
	o.requested.memory = 8 * gib
	o.runs[week-1].killed = slices.Clone(o.runs[week-1].killed)
	o.runs[week-1].killed[100] = true
	if target, _ := byVPA(o); target.memory < 8*gib*1.2*1.15 || target.memory > 8*gib*1.2*1.15*1.06 {
		t.Errorf("VPA recommends %.2f Gi after a kill at 8 Gi", target.memory/gib)
	}
	state := model.NewAggregateContainerState()
	o.runs[0].feed(model.NewContainerState(nil, state), begin)
	if state.TotalSamplesCount != 24*60 || state.LastSampleStart.Sub(state.FirstSampleStart) != 24*time.Hour-time.Minute {
		t.Errorf("%d samples from %s to %s of a day", state.TotalSamplesCount, state.FirstSampleStart, state.LastSampleStart)
	}
}

// Tideline cuts nothing of what was held down, and raises what was killed.
func TestTidelineIsToldOfHeldSamplesAndKills(t *testing.T) {
	o := steady("small-traffic", amounts{2, 8 * gib})
	o.requested = amounts{2, 8 * gib}
	for day := range o.runs {
		o.runs[day].throttled = slices.Repeat([]bool{true}, slotsPerDay)
	}
	if got := byTideline(o); got != o.requested {
		t.Errorf("Tideline makes %+v of %+v, which is held down", got, o.requested)
	}
	u := o.runs[0].usage(8 * gib)
	if u.MemoryHeld != 8*gib || u.MemoryPeak != 0 || u.Throttled.SampleCount() != slotsPerDay || u.CPU.SampleCount() != 0 ||
		u.EvidenceSeconds != 86400 || u.OOMKills != 0 {
		t.Errorf("what was held down is kept as %+v", u)
	}
	o.runs[2].killed = slices.Clone(o.runs[2].killed)
	o.runs[2].killed[5] = true
	if got := byTideline(o); math.Abs(got.memory/(8*gib)-1.2*1.3) > 0.001 {
		t.Errorf("Tideline gives %.2f Gi after a kill at 8 Gi", got.memory/gib)
	}
	if u := o.runs[2].usage(8 * gib); u.OOMKills != 1 || u.OOMLimit != 8*gib || u.EvidenceSeconds != 86400 {
		t.Errorf("a run that was killed is kept as %+v", u)
	}
}

func TestInterpolated(t *testing.T) {
	values := []float64{1, 2, 4, 8, 16}
	for share, want := range map[float64]float64{0: 1, 0.25: 2, 0.625: 6, 0.95: 14.4, 1: 16} {
		if got := interpolated(values, share); math.Abs(got-want) > 1e-9 {
			t.Errorf("the share of %.3f is %.2f, want %.2f", share, got, want)
		}
	}
}

package main

import (
	"math"
	"testing"
	"time"
)

// small is an experiment that fits a test: two models, merged every ten hours.
var small = experiment{
	models: 2, machines: 4, interval: 10 * time.Hour, jitter: 30 * time.Minute,
	shortest: 15 * time.Minute, longest: 35 * time.Minute,
	horizon: 30 * time.Hour, warmUp: 10 * time.Hour, late: 15 * time.Hour, stuck: time.Hour,
}

func hours(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }

func TestDrawsAreFixed(t *testing.T) {
	var sum time.Duration
	for model := range fixed.models {
		for run := range 3 {
			d := fixed.duration(model, run)
			if d < fixed.shortest || d >= fixed.longest || d != fixed.duration(model, run) {
				t.Fatalf("merge %d of model %d takes %s", run, model, d)
			}
			if lag := fixed.lag(model, run); lag < -fixed.jitter || lag >= fixed.jitter {
				t.Fatalf("merge %d of model %d starts %s late", run, model, lag)
			}
			sum += d
		}
	}
	if mean := sum / 180; mean < 23*time.Minute || mean > 27*time.Minute {
		t.Errorf("merges take %s on average, want about 25 min", mean)
	}
	other := fixed
	other.seed++
	if other.duration(0, 0) == fixed.duration(0, 0) || fixed.duration(0, 0) == fixed.duration(1, 0) {
		t.Error("another seed or model draws the same")
	}
	if got := fixed.bound(); got != 10 {
		t.Errorf("the bound is %v machines, want 10", got)
	}
}

// Model 0 is merged in time; model 1 is merged once, and is 29 h old minus nothing at the end.
func TestResult(t *testing.T) {
	r := record{merges: []merge{
		{model: 0, asked: hours(0.5), began: hours(0.6), ended: hours(1)},
		{model: 0, asked: hours(11), began: hours(11.5), ended: hours(12)},
		{model: 0, asked: hours(22), began: hours(23), ended: hours(23.5)},
		{model: 1, asked: hours(0.5), began: hours(0.6), ended: hours(1)},
		{model: 1, asked: hours(11), began: never, ended: never},
	}}
	got := small.result(strategy{}, 8, r)
	if got.merged != 2 || got.late != 1 || got.oldest != hours(29) {
		t.Errorf("merged %d, late %d, oldest %s; want 2, 1, 29h", got.merged, got.late, got.oldest)
	}
	if got.waitP50 != hours(1) || got.waitP99 != hours(19) {
		t.Errorf("waits of %s and %s, want 1h and 19h", got.waitP50, got.waitP99)
	}
}

// What was old before the end of the warm-up does not count.
func TestWarmUpDoesNotCount(t *testing.T) {
	r := record{merges: []merge{
		{model: 0, asked: 0, began: hours(9), ended: hours(9.5)}, {model: 0, ended: hours(19)}, {model: 0, ended: hours(29)},
		{model: 1, asked: 0, began: hours(9), ended: hours(10.5)}, {model: 1, ended: hours(20)}, {model: 1, ended: hours(29)},
	}}
	if got := small.oldest(r, 0); got != hours(10) {
		t.Errorf("model 0 was %s old, want 10h", got)
	}
	if got := small.oldest(r, 1); got != hours(20) {
		t.Errorf("model 1 was %s old, want the 20h that it reached after the warm-up", got)
	}
}

func TestMachineHours(t *testing.T) {
	r := record{steps: []step{
		{at: hours(8), model: 0, held: 4, working: true},
		{at: hours(11), model: 1, held: 2},
		{at: hours(12), model: 0},
		{at: hours(14), model: 1, held: 4, working: true},
		{at: hours(14.5), model: 1},
	}}
	held, worked := small.machineHours(r)
	if math.Abs(held-(2*4+3*2+0.5*4)) > 1e-9 || math.Abs(worked-(2*4+0.5*4)) > 1e-9 {
		t.Errorf("held %v and worked %v machine-hours, want 16 and 10", held, worked)
	}
}

func TestDeadlocks(t *testing.T) {
	partly := func(at float64, model, held int) step { return step{at: hours(at), model: model, held: held} }
	for _, test := range []struct {
		name  string
		steps []step
		want  int
	}{
		{"nothing is held", nil, 0},
		{"two hold two each until the end", []step{partly(2, 0, 2), partly(3, 1, 2)}, 1},
		{"for less than an hour", []step{partly(2, 0, 2), partly(2.9, 0, 0)}, 0},
		{"once for an hour and once for five", []step{partly(2, 0, 2), partly(3, 0, 0), partly(4, 1, 2), partly(9, 1, 0)}, 2},
		{"others take turns in holding", []step{partly(2, 0, 2), partly(2.5, 1, 2), partly(2.5, 0, 0), partly(3.2, 0, 1)}, 1},
		{"another works meanwhile", []step{
			partly(2, 0, 2), {at: hours(2.5), model: 1, held: 4, working: true}, partly(3.2, 1, 0), partly(3.4, 0, 0),
		}, 0},
	} {
		if got := small.deadlocks(record{steps: test.steps}); got != test.want {
			t.Errorf("%s: %d deadlocks, want %d", test.name, got, test.want)
		}
	}
}

package main

import (
	"math"
	"reflect"
	"testing"
)

// drawn are tasks of a seed.
func drawn(seed uint64, n int) []task {
	tasks := make([]task, n)
	for i := range tasks {
		tasks[i] = draw(seed, i)
	}
	return tasks
}

func TestTheSameSeedMakesTheSameTasks(t *testing.T) {
	if !reflect.DeepEqual(draw(3, 17), draw(3, 17)) {
		t.Error("the same seed and index make two tasks")
	}
	if reflect.DeepEqual(draw(3, 17).runs, draw(4, 17).runs) || reflect.DeepEqual(draw(3, 17).runs, draw(3, 20).runs) {
		t.Error("another seed or index makes the same task")
	}
}

// What people ask for leaves as much unused as was measured, tiers are as frequent as one another, and shapes as they should be.
func TestTasksAreAsDocumented(t *testing.T) {
	tiers, frequent, unused := map[string]int{}, map[shape]int{}, amounts{}
	const n = 3000
	for _, task := range drawn(1, n) {
		tiers[task.tier.Name]++
		frequent[task.shape]++
		need := needed(task.runs[:week], 0.95)
		unused.cpu += (1 - need.cpu/task.requested.cpu) / n
		unused.memory += (1 - need.memory/task.requested.memory) / n
		if len(task.runs) != sixWeeks || len(task.runs[0].cpu) < 4*12 || len(task.runs[0].cpu) > slotsPerDay {
			t.Errorf("a task has %d runs of %d samples", len(task.runs), len(task.runs[0].cpu))
		}
		if ratio := task.requested.cpu / need.cpu; ratio < 0.499 || ratio > 6.01 ||
			ratio > 1.001 && task.shape == throttled || ratio < 0.999 && task.shape != throttled {
			t.Errorf("a task of shape %d asks for %.2f of its CPU", task.shape, ratio)
		}
		if ratio := task.requested.memory / need.memory; ratio < 0.799 || ratio > 6.01 || (ratio < 1) != (task.shape == killed) {
			t.Errorf("a task of shape %d asks for %.2f of its memory", task.shape, ratio)
		}
	}
	for name, count := range tiers {
		if count != n/3 {
			t.Errorf("%d tasks of tier %s", count, name)
		}
	}
	for _, s := range shapes {
		if share := 100 * frequent[s.shape] / n; share < s.percent-3 || share > s.percent+3 {
			t.Errorf("%d %% of tasks are %s", share, s.name)
		}
	}
	if math.Abs(unused.cpu-0.43) > 0.02 || math.Abs(unused.memory-0.46) > 0.02 {
		t.Errorf("%.2f of CPU and %.2f of memory that is asked for are not needed", unused.cpu, unused.memory)
	}
}

func TestShapesAreWhatTheyAreCalled(t *testing.T) {
	for _, task := range drawn(2, 300) {
		before, after := needed(task.runs[:week], 0.5), needed(task.runs[week:2*week], 0.5)
		first := task.runs[0]
		switch tail := len(first.memory) / 10; task.shape {
		case ramping:
			if after.cpu < before.cpu {
				t.Errorf("what ramps needs %.2f processors after %.2f", after.cpu, before.cpu)
			}
		case bursty:
			if peak := needed(task.runs, 1); peak.cpu < 1.4*before.cpu {
				t.Errorf("what is bursty needs at most %.2f processors, and %.2f at half of the time", peak.cpu, before.cpu)
			}
		case leaking:
			if begin, end := average(first.memory[:tail]), average(first.memory[len(first.memory)-tail:]); end < 1.1*begin {
				t.Errorf("what leaks has %.0f bytes at the end of a run and %.0f at its beginning", end, begin)
			}
		case throttled:
			if peak := needed(task.runs, 1); peak.cpu <= task.requested.cpu {
				t.Error("what is throttled never is")
			}
		case killed:
			if peak := needed(task.runs, 1); peak.memory <= task.requested.memory || !task.tooLittle {
				t.Error("what is killed never is")
			}
		default:
		}
	}
}

func TestNeeded(t *testing.T) {
	runs := []run{{[]float64{4, 1, 3}, []float64{1, 7, 2}}, {[]float64{2}, []float64{5}}}
	for share, want := range map[float64]float64{0.25: 1, 0.5: 2, 0.51: 3, 0.75: 3, 0.99: 4, 1: 4} {
		if got := needed(runs, share); got != (amounts{want, 7}) {
			t.Errorf("%.2f of the time %+v is needed, want %.0f processors and 7 bytes", share, got, want)
		}
	}
}

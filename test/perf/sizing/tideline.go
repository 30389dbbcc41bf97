package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const (
	container = "trainer"
	// nearly is the share of its limit from which on memory is said to be held, as internal/usage/promquery has it.
	nearly = 0.95
)

var (
	// begin is when the history begins. What is recommended does not depend on it.
	begin       = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)
	trainerPart = sizing.Part{Role: sizing.Master, Container: container}
)

// byTideline is what a container requests at a start, where sizing is enforced, with what the collector and the ledger keep.
type byTideline struct {
	task task
	part sizing.Part
	// kept are the usages of days, and today that of the run so far.
	kept  [sixWeeks + 1]sizing.Usage
	today sizing.Usage
	// cpu and throttled samples of the day's run.
	cpu       []float64
	throttled []bool
	killed    int64
	before    *v1beta1.SizingStatus
}

func (b *byTideline) recommend(day, slot int) (amounts, bool) {
	history := sizing.History{WindowDays: sizing.DefaultWindowDays}
	for d := max(day-history.WindowDays, 0); d <= day; d++ {
		if u := b.kept[d]; u.RunSeconds > 0 || u.OOMKills > 0 {
			history.Add(b.part, begin.AddDate(0, 0, d), u)
		}
	}
	if b.killed > 0 {
		history.RememberKill(b.part, b.killed)
	}
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(b.task.requested.cpu*1000+0.5), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(b.task.requested.memory), resource.BinarySI),
	}
	containers := []corev1.Container{{
		Name: container, Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests.DeepCopy()},
	}}
	now := begin.AddDate(0, 0, day).Add(time.Duration(slot) * slotSeconds * time.Second)
	rules := sizing.Rules{Mode: v1beta1.SizingEnforce, Tier: b.task.tier, Before: b.before}
	b.before = sizing.SizeRequests([]sizing.Ask{{Role: b.part.Role, Containers: containers}}, history, rules, now)
	sizing.ApplyRequests(b.part.Role, containers, b.before)
	got := containers[0].Resources.Requests
	return amounts{got.Cpu().AsApproximateFloat64(), got.Memory().AsApproximateFloat64()}, true
}

// learn keeps a run as the ledger has it. A kill is known at once; the rest is collected when the run is over.
func (b *byTideline) learn(day, _ int, s seen, limits amounts) {
	b.cpu, b.throttled = append(b.cpu, s.cpu...), append(b.throttled, s.throttled...)
	for _, memory := range s.memory {
		if memory >= nearly*limits.memory {
			b.today.MemoryHeld = max(b.today.MemoryHeld, int64(memory))
		} else {
			b.today.MemoryPeak = max(b.today.MemoryPeak, int64(memory))
		}
	}
	if !s.killed {
		return
	}
	limit := int64(limits.memory)
	b.killed = max(b.killed, limit)
	b.kept[day] = b.kept[day].Merge(sizing.Usage{OOMKills: 1, OOMLimit: limit})
	if sizing.WasCut(b.before, b.part) {
		sizing.NoteOOM(b.before, b.part, begin.AddDate(0, 0, day))
	}
}

// end adds what the day's run used. Of CPU, the first sample counts if it is above the next, and the last does not: see
// internal/usage/promquery.
func (b *byTideline) end(day int) {
	seconds := int64(len(b.cpu)) * slotSeconds
	u := b.today
	u.RunSeconds, u.SeenSeconds, u.EvidenceSeconds = seconds, seconds, slotsPerDay*slotSeconds // it ended well, whatever happened
	for i := range b.cpu {
		if i+1 == len(b.cpu) || i == 0 && b.cpu[0] <= b.cpu[1] {
			continue
		}
		if b.throttled[i] {
			u.Throttled.Add(b.cpu[i], 1)
		} else {
			u.CPU.Add(b.cpu[i], 1)
		}
	}
	b.kept[day] = b.kept[day].Merge(u)
	b.cpu, b.throttled, b.today, b.before = nil, nil, sizing.Usage{}, nil
}

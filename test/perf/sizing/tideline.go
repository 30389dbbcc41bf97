package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const (
	container = "trainer"
	// nearly is the share of its limit from which on memory is said to be held, as internal/usage/promquery has it.
	nearly = 0.95
)

// begin is when the history begins. What is recommended does not depend on it.
var begin = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

// byTideline is what a container requests at the next start, where sizing is enforced.
func byTideline(o observed) amounts {
	part := sizing.Part{Role: sizing.Master, Container: container}
	history := sizing.History{WindowDays: week}
	for day, r := range o.runs {
		history.Add(part, begin.AddDate(0, 0, day), r.usage(o.requested.memory))
	}
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(o.requested.cpu*1000+0.5), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(o.requested.memory), resource.BinarySI),
	}
	containers := []corev1.Container{{
		Name: container, Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests.DeepCopy()},
	}}
	rules := sizing.Rules{Mode: v1alpha1.SizingEnforce, Tier: o.tier}
	asks := []sizing.Ask{{Role: part.Role, Containers: containers}}
	status := sizing.SizeRequests(asks, history, rules, begin.AddDate(0, 0, week))
	sizing.ApplyRequests(part.Role, containers, status)
	got := containers[0].Resources.Requests
	return amounts{got.Cpu().AsApproximateFloat64(), got.Memory().AsApproximateFloat64()}
}

// usage is a day's run as it is kept in the ledger: what internal/usage/promquery makes of it.
func (s seen) usage(limit float64) sizing.Usage {
	seconds := int64(len(s.cpu)) * slotSeconds
	u := sizing.Usage{
		RunSeconds: seconds, SeenSeconds: seconds, OOMKills: int64(s.kills()),
		EvidenceSeconds: slotsPerDay * slotSeconds, // a run that began and ended well in the day, whatever happened on the way
	}
	for i := range s.cpu {
		if s.throttled[i] {
			u.Throttled.Add(s.cpu[i], 1)
		} else {
			u.CPU.Add(s.cpu[i], 1)
		}
		if s.memory[i] >= nearly*limit {
			u.MemoryHeld = max(u.MemoryHeld, int64(s.memory[i]))
		} else {
			u.MemoryPeak = max(u.MemoryPeak, int64(s.memory[i]))
		}
	}
	if u.OOMKills > 0 {
		u.OOMLimit = int64(limit)
	}
	return u
}

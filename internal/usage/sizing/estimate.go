package sizing

import (
	"math"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

const (
	day = 24 * 60 * 60
	// enoughCoverage is the share of the time that a task ran, in percent, that must have been seen.
	enoughCoverage = 80
	// nearly is the share of a limit, in percent, from which memory counts as bounded by the limit.
	nearly = 95
	// mib is what memory is rounded up to.
	mib = 1 << 20
	// OOMs raise what a container may use by a fifth, and by 100 MiB at least, as Vertical Pod Autoscaler does.
	oomPercent, oomBytes = 120, 100 * mib
)

// Estimate is what use calls for, of one resource of a part, and how that comes about. Amounts are in millicores of CPU and bytes
// of memory.
type Estimate struct {
	// Used is what was used: the processors that sufficed at the tier's share of the time, or the highest peak of memory.
	Used int64
	// Days are the days' worth of history behind it, up to WindowDays.
	Days       float64
	WindowDays int
	// BufferPercent is what the tier requests of it, and Wider the factor by which a shorter history widens that: 1 for a window
	// that is full.
	BufferPercent int32
	Wider         float64
	// Growth is the factor by which more is likely to be needed soon; 1 for none.
	Growth float64
	// Cap is Used with all margins; 0 if Reason is another than SizedByUse.
	Cap int64
	// Reason is SizedByUse if there is a cap, and else why not.
	Reason string
	// Coverage is the share of the time that the task ran that was seen, in percent.
	Coverage int64
}

// Estimate is what the history of a part calls for, by the rules of a tier:
//
//	cap = used × buffer × (1 + 1/days − 1/window) × growth
//
// which is just the buffer for a full window without a trend, and wider for less, as Vertical Pod Autoscaler's confidence
// multiplier for upper bounds is (recommender/logic/estimator.go), but for the constant that makes it meet the buffer.
func (h History) Estimate(part Part, resource string, rule config.Sizing) Estimate {
	u := h.Usage[part]
	e := Estimate{
		WindowDays: h.WindowDays, Wider: 1, Growth: growthFactor(h.Days[part], resource), BufferPercent: rule.CPUBufferPercent,
		Coverage: 100, Reason: v1beta1.SizedByUse,
	}
	if u.RunSeconds > 0 {
		e.Coverage = min(u.SeenSeconds*100/u.RunSeconds, 100)
	}
	var held bool
	evidence := u.EvidenceSeconds
	if resource == CPU {
		enough, known := u.Quantile(float64(rule.CPUPercentile) / 100)
		e.Used, held = int64(math.Ceil(enough*1000)), !known && len(u.Throttled) > 0
	} else {
		e.BufferPercent = rule.MemoryBufferPercent
		e.Used, held = max(u.MemoryPeak, u.MemoryHeld), u.MemoryHeld > 0 && u.MemoryHeld >= u.MemoryPeak
		// A container at its CPU limit is no evidence for its need of CPU, but still shows its need of memory.
		evidence = max(evidence, u.SeenSeconds)
	}
	e.Days = min(float64(evidence)/day, float64(h.WindowDays))
	switch {
	case held:
		e.Reason = v1beta1.SizedHeld
	case e.Days < 1 || e.Coverage < enoughCoverage || e.Used <= 0:
		e.Reason = v1beta1.SizedByHistory
	}
	if e.Days > 0 {
		e.Wider = max(1+1/e.Days-1/float64(h.WindowDays), 1)
	}
	if e.Reason == v1beta1.SizedByUse {
		e.Cap = e.withMargins(resource)
	}
	return e
}

// withMargins is the use with the tier's buffer and the margins for a short history and for growth, in whole millicores or MiB.
func (e Estimate) withMargins(resource string) int64 {
	// The last factor keeps rounding errors of the multiplication from adding a whole unit.
	wanted := float64(e.Used) * float64(e.BufferPercent) / 100 * e.Wider * e.Growth * (1 - 1e-12)
	if resource == CPU {
		return int64(math.Ceil(wanted))
	}
	return int64(math.Ceil(wanted/mib)) * mib
}

// GrantedAmount is what a pod of a role would be granted at most of a resource by the rules of a tier, in millicores or bytes,
// summed over its containers. It is false if the use of one of them does not say how much is enough, so that nothing would
// be cut.
func (h History) GrantedAmount(role Role, resource string, rule config.Sizing) (amount int64, known bool) {
	for part, u := range h.Usage {
		if part.Role != role || part.Container == "" {
			continue
		}
		e := h.Estimate(part, resource, rule)
		if e.Reason != v1beta1.SizedByUse || resource == Memory && u.OOMKills > 0 {
			return 0, false
		}
		amount += max(e.Cap, tierFloor(resource, rule))
	}
	return amount, amount > 0
}

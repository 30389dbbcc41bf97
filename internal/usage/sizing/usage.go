// Package sizing derives what containers of a task should request from what they used. It is pure: what was seen
// comes from [Usage] of days, which package collector collects and the ledger keeps; callers apply the result.
package sizing

import (
	"maps"
	"math"
	"slices"
)

// Role is the part of a job whose pods are alike. Worker 0 of a job, and the first pod of a merge, do what no other does.
type Role string

// Roles.
const (
	Master Role = "master"
	Worker Role = "worker"
	// Other is of the pods of other workloads, such as notebooks, which Tideline does not size.
	Other Role = "other"
)

// RoleOf is the role of the pod of a job with that index.
func RoleOf(index int32) Role { return RoleNamed(string(Worker), index) }

// RoleNamed is the role of the pod of a training with that index, by the name of its role there.
func RoleNamed(name string, index int32) Role {
	if index == 0 {
		return Master
	}
	return Role(name)
}

// Key names what usage is of: a container of the pods of a role of a task, of all its runs.
type Key struct {
	// Namespace and Kind of the task's jobs: ElasticTrainingJob or MergeJob, or of what else controls its pods.
	Namespace, Kind string
	// Task is what the jobs do, over their restarts and under whatever names.
	Task string
	Role Role
	// Container by name; empty for what is known of pods as a whole, which is their accelerators.
	Container string
}

// OOMKill is a container that the kernel killed because it ran out of memory.
type OOMKill struct {
	// Pod is its UID.
	Pod  string
	Part Part
	// Restarts is how often containers of the pod had restarted by then, which tells one kill of a pod from another.
	Restarts int32
	// Limit of memory that it ran into, in bytes; 0 for none of its own.
	Limit int64
}

// Usage is what was seen of a Key in a day, or, merged, in several. The zero value is of nothing seen.
type Usage struct {
	// RunSeconds is for how long there was a pod of the role at all, and SeenSeconds the part of it from which there are samples.
	RunSeconds  int64 `json:"runSeconds"`
	SeenSeconds int64 `json:"seenSeconds"`
	// EvidenceSeconds is how much of a day's history a day is worth: the time that was seen and not held down, and a whole day
	// (86400) if a run of the task began and ended well in it and was seen. Merged, their sum.
	EvidenceSeconds int64 `json:"evidenceSeconds"`
	// CPU are processors in use, in samples of five minutes each, of the busiest pod of the role at that time.
	CPU Histogram `json:"cpu,omitzero"`
	// Throttled are the samples in which the container was throttled at its limit. They are lower bounds of what it needed.
	Throttled Histogram `json:"throttled,omitzero"`
	// MemoryPeak is the highest working set, in bytes, of pods that had room below their limit. MemoryHeld is that of pods that were
	// at their limit or nearly so (from 95 % on): what they needed was that much or more.
	MemoryPeak int64 `json:"memoryPeak,omitempty"`
	MemoryHeld int64 `json:"memoryHeld,omitempty"`
	// OOMKills counts containers that ran out of memory, and OOMLimit is the highest limit, in bytes, at which one did.
	OOMKills int64 `json:"oomKills,omitempty"`
	OOMLimit int64 `json:"oomLimit,omitempty"`
	// Accelerators of the pods; with none seen they are unknown and not idle.
	Accelerators AcceleratorUsage `json:"accelerators,omitzero"`
}

// AcceleratorUsage is what accelerators were seen doing.
type AcceleratorUsage struct {
	// HeldSeconds is devices × seconds for which there are samples, and ActiveMilliseconds devices × milliseconds in use thereof.
	HeldSeconds        int64 `json:"heldSeconds,omitempty"`
	ActiveMilliseconds int64 `json:"activeMilliseconds,omitempty"`
	// MemoryPeakMiB is the most memory in use on one device.
	MemoryPeakMiB int64 `json:"memoryPeakMiB,omitempty"`
	// LastBusy is until when one was last in use for a hundredth of five minutes, and LastSeen of when the last sample is, in Unix
	// seconds; 0 for never.
	LastBusy int64 `json:"lastBusy,omitempty"`
	LastSeen int64 `json:"lastSeen,omitempty"`
	// Pod is the name of the only pod of another workload whose accelerators were seen; empty for several, or if that was not noted.
	Pod string `json:"pod,omitempty"`
}

// onlyPod is the pod of both, if there is one.
func (a *AcceleratorUsage) onlyPod(b *AcceleratorUsage) string {
	switch {
	case b.HeldSeconds == 0 && b.LastSeen == 0:
		return a.Pod
	case a.HeldSeconds == 0 && a.LastSeen == 0, a.Pod == b.Pod:
		return b.Pod
	}
	return ""
}

// Merge is the usage of both, whatever their order.
func (u Usage) Merge(v Usage) Usage {
	return Usage{
		RunSeconds:      u.RunSeconds + v.RunSeconds,
		SeenSeconds:     u.SeenSeconds + v.SeenSeconds,
		EvidenceSeconds: u.EvidenceSeconds + v.EvidenceSeconds,
		CPU:             u.CPU.Merge(v.CPU),
		Throttled:       u.Throttled.Merge(v.Throttled),
		MemoryPeak:      max(u.MemoryPeak, v.MemoryPeak),
		MemoryHeld:      max(u.MemoryHeld, v.MemoryHeld),
		OOMKills:        u.OOMKills + v.OOMKills,
		OOMLimit:        max(u.OOMLimit, v.OOMLimit),
		Accelerators: AcceleratorUsage{
			HeldSeconds:        u.Accelerators.HeldSeconds + v.Accelerators.HeldSeconds,
			ActiveMilliseconds: u.Accelerators.ActiveMilliseconds + v.Accelerators.ActiveMilliseconds,
			MemoryPeakMiB:      max(u.Accelerators.MemoryPeakMiB, v.Accelerators.MemoryPeakMiB),
			LastBusy:           max(u.Accelerators.LastBusy, v.Accelerators.LastBusy),
			LastSeen:           max(u.Accelerators.LastSeen, v.Accelerators.LastSeen),
			Pod:                u.Accelerators.onlyPod(&v.Accelerators),
		},
	}
}

const (
	// step is by how much one bucket of a histogram is larger than the one before it.
	step = 1.05
	// lastBucket is the one of more than 16,000 processors.
	lastBucket = 340
)

// Histogram counts samples of processors by bucket: bucket k has those up to 0.001 × 1.05^k processors, and the last all that are
// above. It is kept as counts, which add up to the same whatever the order. The zero value is empty.
type Histogram map[int]int64 //nolint:recvcheck // only Add makes one where there is none

// bucketOf is the bucket of a number of processors.
func bucketOf(processors float64) int {
	switch {
	case !(processors > 0.001): // also what is no number
		return 0
	case processors > 1e6:
		return lastBucket
	}
	// What a bucket's own upper bound comes to must stay in it.
	return min(int(math.Ceil(math.Log(processors/0.001)/math.Log(step)-1e-9)), lastBucket)
}

// bucketBound are the upper bound of a bucket.
func bucketBound(bucket int) float64 { return 0.001 * math.Pow(step, float64(bucket)) }

// Add counts samples of so many processors, and makes the histogram if it is nil.
func (h *Histogram) Add(processors float64, samples int64) {
	if samples <= 0 {
		return
	}
	if *h == nil {
		*h = Histogram{}
	}
	(*h)[bucketOf(processors)] += samples
}

// Merge is the histogram of the samples of both.
func (h Histogram) Merge(other Histogram) Histogram {
	if len(h)+len(other) == 0 {
		return nil
	}
	sum := make(Histogram, max(len(h), len(other)))
	maps.Copy(sum, h)
	for bucket, n := range other {
		sum[bucket] += n
	}
	return sum
}

// SampleCount is how many there are.
func (h Histogram) SampleCount() int64 {
	n := int64(0)
	for _, count := range h {
		n += count
	}
	return n
}

// quantile is the number of processors that suffice for a share of the time. Exact samples say how much was needed, held
// ones are lower bounds. It is false if the result is above every exact sample, because the need is then unknown. This is
// the estimate of Kaplan and Meier (1958) for observations that are censored from the right: those that are held count for
// whatever larger ones were seen. So they never lower it.
func quantile(exact, held Histogram, share float64) (enough float64, known bool) {
	buckets := slices.Sorted(maps.Keys(exact.Merge(held)))
	atRisk, above := float64(exact.SampleCount()+held.SampleCount()), 1.0
	for _, bucket := range buckets {
		if n := exact[bucket]; n > 0 {
			before := above
			above *= 1 - float64(n)/atRisk
			// Without the margin a rounding error would take the next bucket.
			if above <= 1-share+1e-12 {
				within := min((before-(1-share))/(before-above), 1)
				return bucketBound(bucket) * math.Pow(step, within-1), true
			}
		}
		atRisk -= float64(exact[bucket] + held[bucket])
	}
	return 0, false
}

// Quantile is the number of processors that sufficed at a share of the time, as far as that is known.
func (u Usage) Quantile(share float64) (enough float64, known bool) {
	return quantile(u.CPU, u.Throttled, share)
}

// MeanCPU is the mean of what was used in the samples, in millicores, as if each were in the middle of its bucket. Of samples
// that were held down it counts what they used. It is false where there are none.
func (u Usage) MeanCPU() (millicores int64, known bool) {
	all := u.CPU.Merge(u.Throttled)
	sum := 0.0
	for _, bucket := range slices.Sorted(maps.Keys(all)) { // so that the sum is the same whenever it is asked for
		sum += float64(all[bucket]) * bucketBound(bucket) * (1 + 1/step) / 2
	}
	n := all.SampleCount()
	if n == 0 {
		return 0, false
	}
	return int64(math.Round(sum / float64(n) * 1000)), true
}

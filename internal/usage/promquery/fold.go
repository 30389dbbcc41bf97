package promquery

import (
	"math"
	"slices"
	"time"

	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const (
	// heldMemory is the share of its limit from which a container's working set is only a lower bound of its need. The
	// kernel takes back file pages before it kills, so a container may live at its limit.
	heldMemory = 0.95
	// heldProcessor is the share of throttled periods from which the CPU in use is only a lower bound of a container's need:
	// one in twenty. kubernetes-mixin warns from one in four on (alert CPUThrottlingHigh), when something suffers; a sample is
	// believed long before.
	heldProcessor = 0.05
	// shortestPart is the least part of a slot that a rate is put right by.
	shortestPart = time.Minute
	// seenPercent is how much of a run must be seen to count for a day.
	seenPercent = 80
	wholeDay    = int64(24 * time.Hour / time.Second)
	// mostMemory bounds what is believed of memory on a device, in MiB. From it on are what DCGM has for values that it does not
	// know (dcgm_structs.h: DCGM_INT32_BLANK, DCGM_INT64_BLANK).
	mostMemory = 0x7ffffff0
	// mostBytes bounds what is believed of memory, and mostProcessors of CPU, so that no number overflows.
	mostBytes      = 1 << 60
	mostProcessors = 1 << 20
)

// Series are the values of a metric of a container or a device over the day.
type Series struct {
	Pod, Container string
	// Part is the id of the container for OOMEvents, and what names the device for metrics of devices.
	Part   string
	Points []Point
}

// Point is a value that speaks of the five minutes before its time.
type Point struct {
	At    time.Time
	Value float64
}

// Answers are series by metric.
type Answers map[Metric][]Series

// source is what a series is of.
type source struct{ pod, container, part string }

// values are one for each slot; what is not known is NaN. A nil one knows nothing.
type values []float64

func (v values) at(slot int) (float64, bool) {
	if v == nil || math.IsNaN(v[slot]) {
		return 0, false
	}
	return v[slot], true
}

// tableOf has the values of series by what they are of: the highest, if there are several. A value below zero or above the most
// that is believed is not known.
func (d *Day) tableOf(series []Series, most float64) map[source]values {
	table := map[source]values{}
	for _, s := range series {
		of := source{s.Pod, s.Container, s.Part}
		for _, p := range s.Points {
			slot, ok := d.slotAt(p.At)
			if !ok || !(p.Value >= 0 && p.Value <= most) { // also what is no number
				continue
			}
			if table[of] == nil {
				table[of] = slices.Repeat(values{math.NaN()}, d.passed)
			}
			if known, ok := table[of].at(slot); !ok || p.Value > known {
				table[of][slot] = p.Value
			}
		}
	}
	return table
}

// FoldAnswers adds what was answered about a batch. It takes each batch once.
func (d *Day) FoldAnswers(b Batch, answers Answers) {
	owners := make(map[string][]*Stay, len(b.Pods))
	for _, name := range b.Pods {
		owners[name] = d.ownersBySlot(d.pods[pod{b.Namespace, name}])
	}
	f := folding{d, owners}
	f.foldProcessors(d.tableOf(answers[CPU], mostProcessors), d.tableOf(answers[ThrottledShare], math.MaxFloat64))
	limits := d.tableOf(answers[MemoryLimit], mostBytes)
	f.foldMemory(d.tableOf(answers[WorkingSet], mostBytes), limits)
	f.countKills(d.tableOf(answers[OOMEvents], mostBytes), limits)
	f.foldDevices(d.tableOf(answers[EngineActive], 1), d.tableOf(answers[Utilization], 100), d.tableOf(answers[FramebufferUsed],
		mostMemory-1))
}

// folding is a batch that is added to a day.
type folding struct {
	day    *Day
	owners map[string][]*Stay
}

// ownerOf is the stay to which a sample of a slot belongs; nil for none.
func (f folding) ownerOf(pod string, slot int) *Stay {
	if owners := f.owners[pod]; len(owners) > slot {
		return owners[slot]
	}
	return nil
}

// containerOf is the container to which a sample of a slot belongs; nil for none.
func (f folding) containerOf(of source, slot int) *container {
	owner := f.ownerOf(of.pod, slot)
	if owner == nil || of.container == "" {
		return nil
	}
	r := f.day.roles[owner.roleKey()]
	if r.containers[of.container] == nil {
		r.containers[of.container] = &container{}
	}
	return r.containers[of.container]
}

// eachValue calls do for each value that is known and belongs somewhere.
func (f folding) eachValue(table map[source]values, do func(of source, slot int, value float64, c *container)) {
	for of, values := range table {
		for slot := range values {
			if value, ok := values.at(slot); ok {
				if c := f.containerOf(of, slot); c != nil {
					do(of, slot, value, c)
				}
			}
		}
	}
}

func (f folding) foldProcessors(used, throttled map[source]values) {
	f.eachValue(used, func(of source, slot int, value float64, c *container) {
		c.seen.add(slot)
		value, believed := value, f.wasThroughout(of.pod, used[of], slot)
		if !believed {
			value, believed = f.atStart(of.pod, used[of], slot)
		}
		if believed {
			share, _ := throttled[of].at(slot)
			c.addSample(slot, value, share >= heldProcessor)
		}
	})
}

// atStart is the rate of the slot in which a container began, if it says anything. It is a lower bound: rate() divides by its
// whole range, and a container begins after its pod, by whose time it is put right. So it is believed where it is above that of
// the next slot, as a spike at the start is; else the container was merely seen. Less than a minute is too
// short to tell a rate from.
func (f folding) atStart(pod string, values values, slot int) (rate float64, believed bool) {
	begin, began := f.day.begin.Add(time.Duration(slot)*slotLength), f.ownerOf(pod, slot).Begin
	before := slot == 0 && began.Before(begin)
	if slot > 0 {
		_, before = values.at(slot - 1)
	}
	if before || slot+1 >= len(values) {
		return 0, false
	}
	rate = values[slot]
	if there := begin.Add(slotLength).Sub(began); there < slotLength && there >= shortestPart {
		rate *= float64(slotLength) / float64(there)
	}
	next, known := values.at(slot + 1)
	return rate, known && rate > next
}

// wasThroughout tells whether a container existed, and was scraped, for the whole slot. In other slots its rate is too low,
// because rate() divides by its whole range. In the ledger a pod begins before its containers, so the neighbouring slots must
// have a rate too.
func (f folding) wasThroughout(pod string, values values, slot int) bool {
	for _, beside := range []int{slot - 1, slot + 1} {
		if beside < 0 || beside >= len(values) {
			continue
		}
		if _, ok := values.at(beside); !ok {
			return false
		}
	}
	begin := f.day.begin.Add(time.Duration(slot) * slotLength)
	owner := f.ownerOf(pod, slot)
	return !owner.Begin.After(begin) && !owner.End.Before(begin.Add(slotLength))
}

func (f folding) foldMemory(used, limits map[source]values) {
	f.eachValue(used, func(of source, slot int, value float64, c *container) {
		if limit, _ := limits[of].at(slot); limit > 0 && value >= heldMemory*limit {
			c.other.MemoryHeld = max(c.other.MemoryHeld, int64(value))
		} else {
			c.other.MemoryPeak = max(c.other.MemoryPeak, int64(value))
		}
	})
}

// countKills counts by how much counters rose. A counter that falls was reset. A container that did not exist before began
// at 0, if its pod began on the day or had an earlier container of that name.
func (f folding) countKills(counters, limits map[source]values) {
	first := firstSlots(counters)
	for of, values := range counters {
		name := source{pod: of.pod, container: of.container}
		before, began := 0.0, false
		for slot := range values {
			value, ok := values.at(slot)
			if !ok {
				continue
			}
			owner := f.ownerOf(of.pod, slot)
			fresh := slot > first[name] || owner != nil && !owner.Begin.Before(f.day.begin)
			rose := value - before
			switch {
			case !began && !fresh:
				rose = 0
			case value < before:
				rose = value
			}
			before, began = value, true
			if c := f.containerOf(of, slot); c != nil && rose > 0 {
				c.other.OOMKills += int64(rose)
				c.other.OOMLimit = max(c.other.OOMLimit, nearestKnown(limits[name], slot))
			}
		}
	}
}

// firstSlots are those in which there was a container of a name, whatever its id.
func firstSlots(table map[source]values) map[source]int {
	first := map[source]int{}
	for of, values := range table {
		name := source{pod: of.pod, container: of.container}
		slot := slices.IndexFunc(values, func(value float64) bool { return !math.IsNaN(value) })
		if earliest, known := first[name]; !known || slot < earliest {
			first[name] = slot
		}
	}
	return first
}

// nearestKnown is the value of a slot, or else the nearest known one before it, or after it. A container that was killed
// has no value in the slot of the kill.
func nearestKnown(v values, slot int) int64 {
	for i := range v {
		for _, other := range []int{slot - i, slot + i} {
			if other < 0 || other >= len(v) {
				continue
			}
			if value, ok := v.at(other); ok {
				return int64(value)
			}
		}
	}
	return 0
}

// foldDevices adds the use of devices. A shared device reports the use by all its pods, so each pod counts the part that it
// holds.
func (f folding) foldDevices(active, utilization, memory map[source]values) {
	for of, values := range utilization {
		if active[of] == nil {
			active[of] = slices.Repeat([]float64{math.NaN()}, len(values))
		}
		for slot := range values {
			// It stands in where a device tells nothing better.
			percent, ok := values.at(slot)
			if _, better := active[of].at(slot); ok && !better {
				active[of][slot] = percent / 100
			}
		}
	}
	byPod := map[string][]values{}
	for of, values := range active {
		byPod[of.pod] = append(byPod[of.pod], values)
	}
	for pod, devices := range byPod {
		for slot, owner := range f.owners[pod] {
			if owner != nil {
				seen := &f.day.roles[owner.roleKey()].devices
				if seen.addSample(slot, owner.Accelerators, devices) && owner.Role == sizing.Other {
					seen.notePod(pod)
				}
			}
		}
	}
	for of, values := range memory {
		for slot, owner := range f.owners[of.pod] {
			if value, ok := values.at(slot); ok && owner != nil {
				peak := &f.day.roles[owner.roleKey()].devices.memoryPeak
				*peak = max(*peak, int64(value))
			}
		}
	}
}

// role is what was seen of the pods of a role.
type role struct {
	// ran are the slots in which there was a pod of it, and accelerated those in which one held accelerators.
	ran, accelerated slots
	// runs are the slots of each run.
	runs       map[string]slots
	containers map[string]*container
	devices    devices
	forgotten  bool
}

// container is what was seen of the containers of one name in a role.
type container struct {
	// seen are the slots in which one was. Of those that were sampled, busiest has the processors in use by the busiest one; in
	// those that were held it was throttled.
	seen, sampled, held slots
	busiest             [slotsPerDay]float64
	// other is what is known of memory.
	other sizing.Usage
}

// addSample adds the CPU of a container in a slot; the busiest container counts. Among equal ones a throttled one counts,
// because it may have needed more.
func (c *container) addSample(slot int, processors float64, held bool) {
	known := c.sampled.has(slot)
	if known && processors < c.busiest[slot] {
		return
	}
	if !held && (!known || processors > c.busiest[slot]) {
		c.held.remove(slot)
	}
	if held {
		c.held.add(slot)
	}
	c.sampled.add(slot)
	c.busiest[slot] = processors
}

func (c *container) toUsage(ran slots, well []slots) sizing.Usage {
	u := c.other
	for slot := range slotsPerDay {
		switch {
		case !c.sampled.has(slot):
		case c.held.has(slot):
			u.Throttled.Add(c.busiest[slot], 1)
		default:
			u.CPU.Add(c.busiest[slot], 1)
		}
	}
	u.RunSeconds, u.SeenSeconds = ran.totalSeconds(), c.seen.totalSeconds()
	u.EvidenceSeconds = dayEvidence(u.SeenSeconds-c.held.totalSeconds(), c.seen, well)
	return u
}

// dayEvidence is how many seconds of evidence a day counts: what was seen, or a whole day if a run was seen that began and
// ended well on it.
func dayEvidence(seconds int64, seen slots, well []slots) int64 {
	for _, ran := range well {
		both := ran.intersect(&seen)
		if both.totalSeconds()*100 >= ran.totalSeconds()*seenPercent {
			return wholeDay
		}
	}
	return seconds
}

// devices is what was seen of the accelerators of a role.
type devices struct {
	sampled slots
	// held is in thousandths of a device × seconds, active in milliseconds.
	held, active int64
	memoryPeak   int64
	// busy are the slots in which one was in use.
	busy slots
	// pod is the only one of another workload that was seen, unless several were.
	pod     string
	several bool
}

// notePod notes that devices of a pod of another workload were seen.
func (d *devices) notePod(name string) {
	d.several = d.several || d.pod != "" && d.pod != name
	d.pod = name
}

// leastUse is the share of five minutes from which on a device counts as in use: drivers report traces of idle ones.
const leastUse = 0.01

// addSample adds the use of a pod's devices in a slot, if there is a sample of one. The pod holds so many thousandths of them.
func (d *devices) addSample(slot int, thousandths int64, devices []values) bool {
	n := int64(0)
	for _, device := range devices {
		if _, ok := device.at(slot); ok {
			n++
		}
	}
	if n == 0 || thousandths <= 0 {
		return false
	}
	holds := min(thousandths, 1000*n)
	for _, device := range devices {
		share, _ := device.at(slot)
		if share >= leastUse {
			d.busy.add(slot)
		}
		d.active += int64(math.Round(share * float64(slotSeconds*holds) / float64(n)))
	}
	d.held += holds * slotSeconds
	d.sampled.add(slot)
	return true
}

func (d *devices) toUsage(day time.Time, ran slots, well []slots) sizing.Usage {
	seen := d.sampled.totalSeconds()
	pod := d.pod
	if d.several {
		pod = ""
	}
	return sizing.Usage{
		RunSeconds:      ran.totalSeconds(),
		SeenSeconds:     seen,
		EvidenceSeconds: dayEvidence(seen, d.sampled, well),
		Accelerators: sizing.AcceleratorUsage{
			HeldSeconds: d.held / 1000, ActiveMilliseconds: d.active, MemoryPeakMiB: d.memoryPeak,
			LastBusy: d.busy.end(day), LastSeen: d.sampled.end(day), Pod: pod,
		},
	}
}

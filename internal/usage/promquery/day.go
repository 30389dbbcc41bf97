package promquery

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Day gathers what pods of Tideline's jobs used on a day of UTC. PendingBatches and BatchQueries say what to ask, and FoldAnswers
// takes the answers, in any order.
type Day struct {
	begin time.Time
	// passed is how many slots of the day are over.
	passed int
	pods   map[pod][]Stay
	roles  map[sizing.Key]*role
	runs   map[runOf]*run
}

// pod is a name that pods have one after another.
type pod struct{ namespace, name string }

// runOf names a run of a task.
type runOf struct{ namespace, kind, task, run string }

// run is what is known of how a run went.
type run struct {
	// apart is true if a stay of it is not final, or reaches beyond the day.
	apart bool
	// master is the last stay of the pod whose end is that of the run.
	master *Stay
}

// NewDay returns the day of UTC on which a time is, as far as it has passed, without any answer yet. Stays that do not
// touch the day are ignored.
func NewDay(day time.Time, stays []Stay, now time.Time) *Day {
	d := &Day{
		begin: day.UTC().Truncate(24 * time.Hour),
		pods:  map[pod][]Stay{},
		roles: map[sizing.Key]*role{},
		runs:  map[runOf]*run{},
	}
	d.passed = min(max(int(now.Sub(d.begin)/slotLength), 0), slotsPerDay)
	for _, s := range stays {
		name := pod{s.Namespace, s.Pod}
		d.pods[name] = append(d.pods[name], s)
	}
	for name, stays := range d.pods {
		sortStays(stays, now)
		if touches := d.recordStays(stays); !touches {
			delete(d.pods, name)
		}
	}
	return d
}

// recordStays writes down when the roles of a pod's stays ran, and how their runs went. It tells whether any did on the day.
func (d *Day) recordStays(stays []Stay) bool {
	touches := false
	for i := range stays {
		s := &stays[i]
		if s.Run != "" {
			name := runOf{s.Namespace, s.Kind, s.Task, s.Run}
			if d.runs[name] == nil {
				d.runs[name] = &run{}
			}
			d.runs[name].addStay(s, d.begin)
		}
		ran := d.slotsRan(s)
		if ran == (slots{}) {
			continue
		}
		touches = true
		r := d.roles[s.roleKey()]
		if r == nil {
			r = &role{runs: map[string]slots{}, containers: map[string]*container{}}
			d.roles[s.roleKey()] = r
		}
		r.ran.addAll(ran)
		if s.Accelerators > 0 {
			r.accelerated.addAll(ran)
		}
		if s.Run != "" {
			of := r.runs[s.Run]
			of.addAll(ran)
			r.runs[s.Run] = of
		}
	}
	return touches
}

// addStay has another stay of the run.
func (r *run) addStay(s *Stay, day time.Time) {
	if !s.Final || s.Begin.Before(day) || s.End.After(day.Add(24*time.Hour)) {
		r.apart = true
	}
	if s.Role == sizing.Master && (r.master == nil || s.Begin.After(r.master.Begin)) {
		r.master = s
	}
}

// endedWell tells whether the run began and ended on the day, and its last master ended well. Workers say nothing of that: they
// are deleted when they are not needed any more.
func (r *run) endedWell() bool { return !r.apart && r.master != nil && r.master.Well }

// PendingBatches are the pods to ask about, in order of their names.
func (d *Day) PendingBatches() []Batch {
	names := slices.SortedFunc(maps.Keys(d.pods), func(a, b pod) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	var batches []Batch
	length := 0
	for _, name := range names {
		if !utf8.ValidString(name.name) || !utf8.ValidString(name.namespace) {
			continue // which no label has as its value: such a query is refused
		}
		last := len(batches) - 1
		length += len(anyOf([]string{name.name}))
		if last < 0 || batches[last].Namespace != name.namespace || len(batches[last].Pods) == maxPods || length > maxNames {
			batches = append(batches, Batch{Namespace: name.namespace})
			last, length = last+1, len(anyOf([]string{name.name}))
		}
		b := &batches[last]
		b.Pods = append(b.Pods, name.name)
		if slices.ContainsFunc(d.pods[name], func(s Stay) bool { return s.Accelerators > 0 }) {
			b.Accelerated = append(b.Accelerated, name.name)
		}
	}
	return batches
}

// TimeRange is from the end of the day's first five minutes to that of its last that have passed: a sample describes the five
// minutes before it. It is false for a day in which no five minutes have passed.
func (d *Day) TimeRange() (from, to time.Time, some bool) {
	return d.begin.Add(slotLength), d.begin.Add(time.Duration(d.passed) * slotLength), d.passed > 0
}

// slotAt is the slot that a sample at that time describes; false for a time outside the TimeRange.
func (d *Day) slotAt(at time.Time) (int, bool) {
	after := at.Sub(d.begin)
	slot := int(after/slotLength) - 1
	return slot, after%slotLength == 0 && slot >= 0 && slot < d.passed
}

// ForgetBatch drops the usage of all roles with a pod in the batch, because their answers are incomplete. What the ledger has of
// them must not be replaced by less.
func (d *Day) ForgetBatch(b Batch) {
	for _, name := range b.Pods {
		for i := range d.pods[pod{b.Namespace, name}] {
			if r := d.roles[d.pods[pod{b.Namespace, name}][i].roleKey()]; r != nil {
				r.forgotten = true
			}
		}
	}
}

// UsageByKey is what was used on the day, as far as it was folded. What was never seen is not in it.
func (d *Day) UsageByKey() map[sizing.Key]sizing.Usage {
	usage := map[sizing.Key]sizing.Usage{}
	for key, r := range d.roles {
		if r.forgotten {
			continue
		}
		var well []slots // of runs that ended well
		for id, ran := range r.runs {
			if d.runs[runOf{key.Namespace, key.Kind, key.Task, id}].endedWell() {
				well = append(well, ran)
			}
		}
		for name, c := range r.containers {
			key.Container = name
			usage[key] = c.toUsage(r.ran, well)
		}
		if r.accelerated != (slots{}) {
			key.Container = ""
			usage[key] = r.devices.toUsage(d.begin, r.accelerated, well)
		}
	}
	return usage
}

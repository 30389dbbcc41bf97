package collector

import (
	"time"

	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// idleDays is how many days back accelerators without use are looked for: as long as a profile may say (spec.idleAfter).
const idleDays = 31

// addDevices adds the day of another workload to a memory that is being made. Tideline sizes none.
func (m *memory) addDevices(d ledger.PartDay, u sizing.Usage) {
	of := task{d.Namespace, d.Kind, d.Task}
	if seen, some := sizing.DeviceDayOf(d.Day, u); some && d.Container == "" {
		m.devices[of] = append(m.devices[of], seen)
	}
}

// IdleTime is for how long the accelerators of pods that are not of Tideline's jobs have been seen without use, not before since,
// and as far as UsageAsOf tells. kind and name are of what controls the pods, or Pod and their own.
func (c *Collector) IdleTime(namespace, kind, name string, since time.Time) (idle time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.IsCollecting() || c.memory == nil {
		return 0, false
	}
	days := c.memory.devices[task{namespace, kind, name}]
	return sizing.IdleTime(days, since), len(days) > 0
}

// PodIdleTime is IdleTime of one pod, by its name, as far as it was seen alone.
func (c *Collector) PodIdleTime(namespace, kind, name, pod string, since time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.IsCollecting() || c.memory == nil {
		return 0
	}
	return sizing.PodIdleTime(c.memory.devices[task{namespace, kind, name}], pod, since)
}

// UsageAsOf is until when the use of tasks is known; zero for nothing known. old is true if it should be known for longer:
// Prometheus does not answer, or the ledger was not read yet. Without Prometheus or a ledger it is false.
func (c *Collector) UsageAsOf() (asOf time.Time, old bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.IsCollecting() {
		return time.Time{}, false
	}
	if c.memory != nil {
		asOf = c.memory.upTo
	}
	return asOf, c.whyUnavailable() != ""
}

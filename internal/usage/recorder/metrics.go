package recorder

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics tell how the ledger is kept (docs/metrics.md).
type metrics struct {
	recorded, failures, stays, decisions, trained prometheus.Counter
	waiting                                       prometheus.GaugeFunc
	written                                       prometheus.Gauge
	// volatile is nil while it is unknown whether the ledger outlives the pod.
	volatile prometheus.Gauge
	// wrote is true once the ledger was written. A standby operator does not export the time.
	wrote atomic.Bool
}

func newMetrics(waiting func() float64) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		recorded: counter("tideline_ledger_stays_recorded_total",
			"Recorded stays of pods, counted again each time that a running pod is recorded."),
		failures: counter("tideline_ledger_failures_total", "Failures to open, read or write the ledger."),
		stays: counter("tideline_ledger_stays_lost_total", "Stays whose end was lost: the ledger refused it, or too many "+
			"entries waited."),
		decisions: counter("tideline_ledger_decisions_lost_total", "Decisions that were lost: the ledger refused them, or too "+
			"many waited."),
		trained: counter("tideline_ledger_trainings_lost_total", "Entries of what became of a training's GPU time that "+
			"were lost: the ledger refused them, or too many waited."),
		waiting: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tideline_ledger_waiting", Help: "Begins and ends of stays, decisions and entries of trainings that wait.",
		}, waiting),
		written: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tideline_ledger_last_write_timestamp_seconds", Help: "When all that waited was last recorded.",
		}),
	}
}

// setKeeping says whether the ledger outlives the pod, before the metrics are registered.
func (m *metrics) setKeeping(k Keeping) {
	if !k.Known {
		return
	}
	m.volatile = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tideline_ledger_volatile", Help: "1 if the ledger is lost with the operator's pod, 0 if it outlives it.",
	})
	if k.Volatile != "" {
		m.volatile.Set(1)
	}
}

// Describe sends what the metrics are.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range []prometheus.Collector{m.recorded, m.failures, m.stays, m.decisions, m.trained, m.waiting, m.written} {
		c.Describe(to)
	}
	if m.volatile != nil {
		m.volatile.Describe(to)
	}
}

// Collect sends the metrics as they are.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{m.recorded, m.failures, m.stays, m.decisions, m.trained, m.waiting} {
		c.Collect(to)
	}
	if m.volatile != nil {
		m.volatile.Collect(to)
	}
	if m.wrote.Load() {
		m.written.Collect(to)
	}
}

// setRecorded says that all that waited is recorded.
func (m *metrics) setRecorded(at time.Time) {
	m.written.Set(float64(at.Unix()))
	m.wrote.Store(true)
}

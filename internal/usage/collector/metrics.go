package collector

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics tell how usage is collected (docs/metrics.md).
type metrics struct {
	up, upTo, tasks prometheus.Gauge
	failures, days  prometheus.Counter
	decisions       *prometheus.CounterVec
	rollBacks       prometheus.Counter
	// asked is true once Prometheus was asked, and known once usage was collected. A standby operator exports neither metric.
	asked, known atomic.Bool
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return &metrics{
		up:       gauge("tideline_prometheus_up", "1 if Prometheus told all that it was last asked of what tasks used, else 0."),
		upTo:     gauge("tideline_usage_last_collection_timestamp_seconds", "Time until which the use of tasks is known."),
		tasks:    gauge("tideline_usage_tasks", "Tasks whose use is known."),
		failures: counter("tideline_usage_failures_total", "Failures to collect, record or read usage."),
		days:     counter("tideline_usage_collections_total", "Days whose usage was collected completely."),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tideline_sizing_decisions_total",
			Help: "Container requests that were sized at the start of an attempt, by mode, resource and reason.",
		}, []string{"mode", "resource", "reason"}),
		rollBacks: counter("tideline_sizing_rollbacks_total",
			"Containers that ran out of memory with less than their template requests. They get it back."),
	}
}

// Describe sends what the metrics are.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range []prometheus.Collector{m.up, m.upTo, m.tasks, m.failures, m.days, m.decisions, m.rollBacks} {
		c.Describe(to)
	}
}

// Collect sends the metrics as they are.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{m.tasks, m.failures, m.days, m.decisions, m.rollBacks} {
		c.Collect(to)
	}
	if m.asked.Load() {
		m.up.Collect(to)
	}
	if m.known.Load() {
		m.upTo.Collect(to)
	}
}

// setRound records whether Prometheus answered all questions of a round.
func (m *metrics) setRound(told bool) {
	up := 0.0
	if told {
		up = 1
	}
	m.up.Set(up)
	m.asked.Store(true)
}

// setKnown says how much is known, and until when; zero for never.
func (m *metrics) setKnown(tasks int, upTo time.Time) {
	m.tasks.Set(float64(tasks))
	if !upTo.IsZero() {
		m.upTo.Set(float64(upTo.Unix()))
		m.known.Store(true)
	}
}

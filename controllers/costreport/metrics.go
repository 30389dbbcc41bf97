package costreport

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/cost/report"
)

// metrics tell how reports are made and mailed (docs/metrics.md).
type metrics struct {
	ready, last, next, seconds, recipients *prometheus.GaugeVec
	cost, utilization, unusable            *prometheus.GaugeVec
	mails                                  *prometheus.CounterVec
}

const labelReport, labelState, labelKind, labelCurrency = "report", "state", "kind", "currency"

func newMetrics() *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, append([]string{labelReport}, labels...))
	}
	return &metrics{
		ready: gauge("tideline_cost_report_ready", "1 while nothing keeps a CostReport from being made, else 0."),
		last:  gauge("tideline_cost_report_last_timestamp_seconds", "End of the period of a CostReport's last report."),
		next: gauge("tideline_cost_report_next_timestamp_seconds",
			"When the next report of a CostReport is due; in the past while a report is overdue."),
		seconds: gauge("tideline_cost_report_duration_seconds", "Time to make the last report of a CostReport."),
		recipients: gauge("tideline_cost_report_recipients",
			"Recipients of a CostReport's last report, by the state of their mail.", labelState),
		cost: gauge("tideline_cost_report_cost",
			"Cost by the last report of a CostReport: total, wasted and recoverable.",
			labelKind, labelCurrency),
		utilization: gauge("tideline_cost_report_utilization_ratio",
			"Share of the time that accelerators were held in which they were used, by the last report of a CostReport."),
		unusable: gauge("tideline_cost_report_unusable_ratio",
			"Share of free accelerators that a gang could not use, by the last report of a CostReport."),
		mails: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tideline_cost_report_mails_total", Help: "Mails of a CostReport that were begun, including those that were not " +
				"accepted.",
		}, []string{labelReport}),
	}
}

func (m *metrics) gauges() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{m.ready, m.last, m.next, m.seconds, m.recipients, m.cost, m.utilization, m.unusable}
}

func (m *metrics) allCollectors() []prometheus.Collector {
	all := []prometheus.Collector{m.mails}
	for _, g := range m.gauges() {
		all = append(all, g)
	}
	return all
}

func (m *metrics) register() error {
	for _, c := range m.allCollectors() {
		if err := ctrlmetrics.Registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// observeDecision tells what was decided.
func (m *metrics) observeDecision(report string, d *costreport.Decision) {
	ready := 0.0
	if meta.IsStatusConditionTrue(d.Status.Conditions, v1beta1.ConditionReady) {
		ready = 1
	}
	m.ready.WithLabelValues(report).Set(ready)
	var last time.Time
	if d.Status.Last != nil {
		last = d.Status.Last.To.Time
	}
	setTimestamp(m.last, report, last)
	setTimestamp(m.next, report, d.Due)
}

// setTimestamp sets a gauge to a time, or removes it for the zero time.
func setTimestamp(g *prometheus.GaugeVec, report string, at time.Time) {
	if at.IsZero() {
		g.DeleteLabelValues(report)
		return
	}
	g.WithLabelValues(report).Set(float64(at.Unix()))
}

// observeNumbers sets the figures of the last report; nil removes them.
func (m *metrics) observeNumbers(name string, n *report.Numbers) {
	of := prometheus.Labels{labelReport: name}
	for _, g := range []*prometheus.GaugeVec{m.cost, m.utilization, m.unusable} {
		g.DeletePartialMatch(of) // the currency may be another one now, and what was known unknown
	}
	if n == nil {
		return
	}
	for kind, amount := range map[string]*float64{"total": &n.Cost, "waste": n.Waste, "recoverable": n.Recoverable} {
		if amount != nil {
			m.cost.WithLabelValues(name, kind, n.Currency).Set(*amount)
		}
	}
	if n.Utilization != nil {
		m.utilization.With(of).Set(*n.Utilization)
	}
	if n.Unusable != nil {
		m.unusable.With(of).Set(*n.Unusable)
	}
}

// observeMails sets the states of the last report's mails; nil for a report without recipients.
func (m *metrics) observeMails(report string, d *costreport.MailsDecision) {
	if d == nil {
		m.recipients.DeletePartialMatch(prometheus.Labels{labelReport: report})
		return
	}
	waiting, held := len(d.Waiting), len(d.Held)
	if d.Problem != "" {
		held += len(d.Send)
	} else {
		waiting += len(d.Send)
	}
	for state, n := range map[string]int{
		"sent": d.Sent, "waiting": waiting, "held": held, "refused": len(d.Refused) + d.Bad, "unconfirmed": len(d.Unconfirmed),
		"missed": len(d.Missed),
	} {
		m.recipients.WithLabelValues(report, state).Set(float64(n))
	}
}

func (m *metrics) countMade(report string, took time.Duration) {
	m.seconds.WithLabelValues(report).Set(took.Seconds())
}

func (m *metrics) countMailed(report string, n int) { m.mails.WithLabelValues(report).Add(float64(n)) }

// forgetReport removes the series of a deleted report.
func (m *metrics) forgetReport(report string) {
	for _, g := range m.gauges() {
		g.DeletePartialMatch(prometheus.Labels{labelReport: report})
	}
	m.mails.DeleteLabelValues(report)
}

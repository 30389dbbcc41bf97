package elastictrainingjob

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tideline-io/tideline/internal/capacity"
)

const labelAsks = "asks"

var unjudgedDesc = prometheus.NewDesc("tideline_unjudged_gangs",
	"Waiting gangs that ask for something that the model of capacity does not cover.", []string{labelAsks}, nil)

// unjudged counts the gangs that wait without being judged, when it is asked.
type unjudged struct {
	count   func() map[string]int
	elected <-chan struct{}
}

// Describe implements prometheus.Collector.
func (*unjudged) Describe(to chan<- *prometheus.Desc) { to <- unjudgedDesc }

// Collect sends a count for each thing that the model does not cover; nothing from an operator that stands by.
func (u *unjudged) Collect(to chan<- prometheus.Metric) {
	select {
	case <-u.elected:
	default:
		return
	}
	count := u.count()
	for _, what := range capacity.ListUnmodelled() {
		to <- prometheus.MustNewConstMetric(unjudgedDesc, prometheus.GaugeValue, float64(count[what]), what)
	}
}

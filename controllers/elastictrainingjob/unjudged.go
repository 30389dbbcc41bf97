package elastictrainingjob

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

const labelAsks = "asks"

var unjudgedDesc = prometheus.NewDesc("tideline_unjudged_gangs",
	"Waiting gangs that ask for something that the model of capacity does not cover.", []string{labelAsks}, nil)

// collectUnjudged counts the gangs that wait without being judged, when it is asked, by what the model does not cover.
func collectUnjudged(count func() map[string]int, elected <-chan struct{}) prometheus.Collector {
	return kube.NewCollector(elected, func(to chan<- prometheus.Metric) {
		counted := count()
		for _, what := range capacity.ListUnmodelled() {
			to <- prometheus.MustNewConstMetric(unjudgedDesc, prometheus.GaugeValue, float64(counted[what]), what)
		}
	}, unjudgedDesc)
}

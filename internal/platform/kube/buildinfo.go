package kube

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// BuildInfo is the metric tideline_build_info, always 1, whose labels tell which version of the operator runs and by which
// version of Go it was built.
func BuildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "tideline_build_info",
		Help:        "Always 1; the labels tell the operator's version and the version of Go that built it.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	}, func() float64 { return 1 })
}

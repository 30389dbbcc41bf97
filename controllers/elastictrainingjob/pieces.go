package elastictrainingjob

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

var (
	unusableDesc = prometheus.NewDesc("tideline_capacity_unusable_ratio",
		"Share of free accelerators that gangs which wait in a queue cannot use, now and after the moves that are advised.",
		[]string{"queue", "resource", "model", "repacked"}, nil)
	movesDesc = prometheus.NewDesc("tideline_capacity_repack_moves",
		"Surplus workers that would have to move to other nodes for the largest waiting gang that this helps.", nil, nil)
)

// collectPieces tells how much of free accelerators is in pieces too small for who waits, when it is asked.
func collectPieces(read func() arbiter.Pieces, elected <-chan struct{}) prometheus.Collector {
	return kube.NewCollector(elected, func(to chan<- prometheus.Metric) {
		found := read()
		for repacked, all := range map[bool][]capacity.Pieces{false: found.Now, true: found.Moved} {
			for i := range all {
				one := &all[i]
				to <- prometheus.MustNewConstMetric(unusableDesc, prometheus.GaugeValue, one.Unusable,
					one.Queue, string(one.Resource), one.Model, strconv.FormatBool(repacked))
			}
		}
		to <- prometheus.MustNewConstMetric(movesDesc, prometheus.GaugeValue, float64(found.Moves))
	}, unusableDesc, movesDesc)
}

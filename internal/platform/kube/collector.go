package kube

import "github.com/prometheus/client_golang/prometheus"

// collector sends metrics of an operator that leads.
type collector struct {
	elected <-chan struct{}
	descs   []*prometheus.Desc
	send    func(chan<- prometheus.Metric)
}

// NewCollector returns a collector of metrics with these descriptions that send sends. Until elected is closed it sends none: an
// operator that stands by knows nothing of the cluster.
func NewCollector(
	elected <-chan struct{}, send func(chan<- prometheus.Metric), descs ...*prometheus.Desc,
) prometheus.Collector {
	return &collector{elected, descs, send}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.elected:
		c.send(to)
	default:
	}
}

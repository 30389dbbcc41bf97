package integration

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"

	"github.com/tideline-io/tideline/test/testutil"
)

// samples are counters, gauges and the counts of histograms, as Prometheus reads them: by name and labels, as in
// tideline_jobs{phase="Running"}.
type samples map[string]float64

// scrape reads what the operator serves to Prometheus.
func scrape(ctx context.Context, address string) samples {
	GinkgoHelper()
	families, err := testutil.ReadMetrics(ctx, address)
	Expect(err).NotTo(HaveOccurred(), "the operator serves metrics that Prometheus can read")
	read := samples{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			read[name+"{"+strings.Join(labels, ",")+"}"] = value(m)
		}
	}
	return read
}

func value(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return float64(m.GetHistogram().GetSampleCount())
}

package recorder

import (
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// served are metrics as Prometheus reads them.
func served(t *testing.T, m *metrics) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	return registry
}

func TestMetricsKeepPrometheusRules(t *testing.T) {
	g := NewWithT(t)
	m := newMetrics(func() float64 { return 3 })
	const last = "tideline_ledger_last_write_timestamp_seconds"
	g.Expect(testutil.GatherAndCount(served(t, m), last)).To(BeZero(), "an operator that stands by has written nothing")
	m.setRecorded(noon)
	m.setKeeping(Keeping{})
	g.Expect(testutil.GatherAndCount(served(t, m), "tideline_ledger_volatile")).To(BeZero(), "unknown is not 0")
	m.setKeeping(Keeping{Known: true, Volatile: "in an emptyDir"})
	g.Expect(testutil.ToFloat64(m.volatile)).To(Equal(1.0))
	registry := served(t, m)
	g.Expect(testutil.GatherAndCount(registry, last)).To(Equal(1))
	g.Expect(testutil.ToFloat64(m.written)).To(BeEquivalentTo(noon.Unix()))
	g.Expect(testutil.ToFloat64(m.waiting)).To(Equal(3.0))
	problems, err := testutil.GatherAndLint(registry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
}

func TestMetricsAgreeWithTheirPage(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../../docs/metrics.md")
	g.Expect(err).NotTo(HaveOccurred())
	m := newMetrics(func() float64 { return 0 })
	m.setRecorded(noon)
	m.setKeeping(Keeping{Known: true})
	families, err := served(t, m).Gather()
	g.Expect(err).NotTo(HaveOccurred())
	types := map[string]string{}
	for _, family := range families {
		types[family.GetName()] = strings.ToLower(family.GetType().String())
	}
	explained := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| `(tideline_ledger_[a-z_]+)` \\| ([a-z]+) \\| [^|]{20,} \\|$")
	for _, row := range rows.FindAllStringSubmatch(string(content), -1) {
		explained[row[1]] = row[2]
	}
	g.Expect(explained).To(Equal(types))
}

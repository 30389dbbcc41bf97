package collector

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// gathered are the metrics as Prometheus reads them.
func gathered(t *testing.T, m *metrics) map[string]string {
	t.Helper()
	g := NewWithT(t)
	registry := prometheus.NewPedanticRegistry()
	g.Expect(registry.Register(m)).To(Succeed())
	problems, err := testutil.GatherAndLint(registry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	types := map[string]string{}
	for _, family := range families {
		types[family.GetName()] = strings.ToLower(family.GetType().String())
	}
	return types
}

func TestMetricsAgreeWithTheirPage(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../../docs/metrics.md")
	g.Expect(err).NotTo(HaveOccurred())
	m := newMetrics()
	g.Expect(gathered(t, m)).To(HaveLen(4), "one that stands by says not whether Prometheus is there, nor until when it told")
	m.setRound(true)
	m.setKnown(7, at("22 12:00:00"))
	m.decisions.WithLabelValues("Enforce", "cpu", v1beta1.SizedByUse).Inc()
	explained := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| `(tideline_(?:usage|prometheus|sizing)_[a-z_]+)` \\| ([a-z]+) \\| " +
		"[^|]*\\| [^|]{20,} \\|$")
	for _, row := range rows.FindAllStringSubmatch(string(content), -1) {
		explained[row[1]] = row[2]
	}
	said := gathered(t, m)
	said["tideline_sizing_slack"] = "gauge" // which TestSlack shows
	g.Expect(explained).To(Equal(said))
}

func TestMetricsSayWhatIsKnown(t *testing.T) {
	w := newFixture(t)
	w.record(stay("ctr", "22 06:00:00", "22 12:00:00"), stay("b", "22 06:00:00", "22 12:00:00"))
	w.pass(turnLength)
	w.Expect(testutil.ToFloat64(w.metrics.up)).To(Equal(1.0))
	w.Expect(testutil.ToFloat64(w.metrics.tasks)).To(Equal(2.0))
	w.Expect(testutil.ToFloat64(w.metrics.days)).To(Equal(15.0))
	w.Expect(testutil.ToFloat64(w.metrics.failures)).To(BeZero())
	w.Expect(testutil.ToFloat64(w.metrics.upTo)).To(BeEquivalentTo(w.clock.Unix()))
	w.prometheus.fail = func(question) error { return errPrometheus }
	w.pass(time.Hour)
	w.Expect(testutil.ToFloat64(w.metrics.up)).To(BeZero())
	w.Expect(testutil.ToFloat64(w.metrics.failures)).To(BeNumerically(">", 0))
	w.Expect(gathered(t, w.metrics)).To(HaveLen(6))
	w.prometheus.fail = nil
	w.pass(time.Hour)
	w.Expect(testutil.ToFloat64(w.metrics.up)).To(Equal(1.0))
	failures := testutil.ToFloat64(w.metrics.failures)
	w.faults.fail = func(int) (bool, error) { return false, errDown }
	w.pass(time.Hour)
	w.Expect(testutil.ToFloat64(w.metrics.failures)).To(BeNumerically(">", failures))
	opened := w.faults.calls
	w.faults.fail = func(call int) (bool, error) {
		if call > opened+1 {
			return false, errDown
		}
		return true, nil
	}
	w.pass(5 * time.Minute)
	w.Expect(w.faults.calls).To(BeNumerically(">=", opened+2), "rounds were begun")
	w.Expect(testutil.ToFloat64(w.metrics.up)).To(Equal(1.0), "it is the ledger's fault")
}

package costreport

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	promtest "github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/cost/report"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// valuesOf are all that is told, by the metric's name and the labels besides the report.
func valuesOf(g *WithT, registry *prometheus.Registry) map[string]float64 {
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := []string{f.GetName()}
			for _, l := range m.GetLabel() {
				if l.GetName() == labelReport {
					g.Expect(l.GetValue()).To(Equal("weekly"))
				} else {
					name = append(name, l.GetValue())
				}
			}
			values[strings.Join(name, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	g := NewWithT(t)
	m := newMetrics()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range m.allCollectors() {
		g.Expect(registry.Register(c)).To(Succeed())
	}
	due := time.Date(2026, time.November, 23, 9, 0, 0, 0, time.UTC)
	made := &costreport.Decision{Due: due, Status: v1beta1.CostReportStatus{
		Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue}},
		Last:       &v1beta1.ReportSummary{To: metav1.NewTime(due.AddDate(0, 0, -7))},
	}}
	m.observeDecision("weekly", made)
	m.countMade("weekly", 1500*time.Millisecond)
	m.countMailed("weekly", 2)
	of := func(n int) []ledger.Delivery { return make([]ledger.Delivery, n) }
	numbers := &report.Numbers{
		Currency: "EUR", Cost: 12.5, Waste: ptr.To(3.0), Recoverable: ptr.To(1.0), Utilization: ptr.To(0.75), Unusable: ptr.To(0.0),
	}
	m.observeNumbers("weekly", numbers)
	mails := &costreport.MailsDecision{Bad: 1, Decision: &delivery.Decision{
		Sent: 7, Send: of(1), Waiting: of(2), Held: of(3), Refused: of(4), Unconfirmed: of(5), Missed: of(6),
	}}
	m.observeMails("weekly", mails)

	values := valuesOf(g, registry)
	g.Expect(values).To(Equal(map[string]float64{
		"tideline_cost_report_ready": 1, "tideline_cost_report_duration_seconds": 1.5, "tideline_cost_report_mails_total": 2,
		"tideline_cost_report_last_timestamp_seconds": float64(due.Unix() - 7*86400),
		"tideline_cost_report_next_timestamp_seconds": float64(due.Unix()),
		"tideline_cost_report_recipients sent":        7, "tideline_cost_report_recipients waiting": 3,
		"tideline_cost_report_recipients held": 3, "tideline_cost_report_recipients refused": 5,
		"tideline_cost_report_recipients unconfirmed": 5, "tideline_cost_report_recipients missed": 6,
		"tideline_cost_report_cost EUR total": 12.5, "tideline_cost_report_cost EUR waste": 3,
		"tideline_cost_report_cost EUR recoverable": 1,
		"tideline_cost_report_utilization_ratio":    0.75, "tideline_cost_report_unusable_ratio": 0,
	}))
	problems, err := promtest.GatherAndLint(registry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())

	mails.Problem = "There is no Secret smtp."
	m.observeMails("weekly", mails)
	g.Expect(valuesOf(g, registry)).To(And(HaveKeyWithValue("tideline_cost_report_recipients held", 4.0),
		HaveKeyWithValue("tideline_cost_report_recipients waiting", 2.0)), "without a server nothing is on its way")
	m.observeNumbers("weekly", &report.Numbers{Currency: "CNY", Cost: 98})
	g.Expect(valuesOf(g, registry)).To(And(HaveKeyWithValue("tideline_cost_report_cost CNY total", 98.0),
		Not(HaveKey("tideline_cost_report_cost EUR total")), Not(HaveKey("tideline_cost_report_cost CNY waste")),
		Not(HaveKey("tideline_cost_report_utilization_ratio"))),
		"in another currency, and unknown figures are removed")
	m.observeNumbers("weekly", nil)
	m.observeMails("weekly", nil)
	m.observeDecision("weekly", &costreport.Decision{})
	g.Expect(valuesOf(g, registry)).To(Equal(map[string]float64{
		"tideline_cost_report_ready": 0, "tideline_cost_report_duration_seconds": 1.5, "tideline_cost_report_mails_total": 2,
	}), "what is not so any more is not told: a suspended report is not overdue")

	m.observeDecision("weekly", made)
	m.observeNumbers("weekly", numbers)
	m.observeMails("weekly", mails)
	m.forgetReport("weekly")
	g.Expect(valuesOf(g, registry)).To(BeEmpty(), "a report that is gone is forgotten")
}

func TestMetricsAreDocumented(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../docs/metrics.md")
	g.Expect(err).NotTo(HaveOccurred())
	descriptions := make(chan *prometheus.Desc, 100)
	for _, c := range newMetrics().allCollectors() {
		c.Describe(descriptions)
	}
	close(descriptions)
	n := 0
	for d := range descriptions {
		name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]
		g.Expect(string(page)).To(ContainSubstring("| `" + name + "` |"))
		n++
	}
	g.Expect(n).To(BeNumerically(">", 5))
}

package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/test/testutil/week"
)

// records reads what [CSV] or [FOCUS] wrote, each record by its columns.
func records(g *WithT, write func(cost.Report, Options) ([]byte, error), o Options) []map[string]string {
	g.THelper()
	content, err := write(week.Report(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(HaveSuffix("\r\n"))
	lines, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	g.Expect(err).NotTo(HaveOccurred())
	var list []map[string]string
	for _, line := range lines[1:] {
		record := map[string]string{}
		for i, column := range lines[0] {
			record[column] = line[i]
		}
		list = append(list, record)
	}
	return list
}

func TestCSV(t *testing.T) {
	g := NewWithT(t)
	list := records(g, CSV, Options{Name: "weekly", Top: 1})
	g.Expect(list[0]).To(Equal(map[string]string{
		"report": "weekly", "revision": "1", "period_start": "2026-11-09T09:00:00+08:00", "period_end": "2026-11-16T09:00:00+08:00",
		"dimension": "user", "rank": "1", "name": "okafor", "team": "vision", "user": "okafor", "namespace": "", "kind": "", "task": "",
		"currency": "CNY", "cost": "70384.47", "cost_before": "67989.97", "cost_share": "0.1267", "waste": "42396.03",
		"recoverable_waste": "21066.73", "accelerator_utilization": "0.3977", "cpu_utilization": "0.1529",
		"memory_utilization": "0.4000",
		"accelerator_hours":  "3044.640", "cpu_hours": "24357.120", "memory_gib_hours": "194856.960", "runs": "29", "pods": "421",
		"uncertain_share": "0.0100", "goodput": "", "progress_gpu_hours": "", "kept_gpu_hours": "", "lost_gpu_hours": "",
	}))
	totals := map[string]decimal.Decimal{}
	rows := map[string]int{}
	for _, record := range list {
		totals[record["dimension"]] = totals[record["dimension"]].Add(decimal.RequireFromString(record["cost"]))
		rows[record["dimension"]]++
		if record["user"] == "legacy-batch" {
			g.Expect(record["accelerator_utilization"]).To(BeEmpty(), "it is unknown")
		}
	}
	g.Expect(rows).To(Equal(map[string]int{"user": 15, "team": 5, "task": 56}), "all rows, whatever the page shows")
	for dimension, total := range totals {
		g.Expect(total.Sub(week.Report().Total.Cost).Abs().LessThan(decimal.New(30, -2))).To(BeTrue(), dimension)
	}
}

// Charges are those of the specification: https://focus.finops.org/focus-specification/v1-0/.
func TestFOCUS(t *testing.T) {
	g := NewWithT(t)
	list := records(g, FOCUS, Options{Name: "weekly"})
	g.Expect(list).To(HaveLen(56))
	g.Expect(list[0]).To(Equal(map[string]string{
		"BilledCost": "31069.92", "BillingAccountId": "Tideline", "BillingAccountName": "Tideline weekly", "BillingCurrency": "CNY",
		"BillingPeriodStart": "2026-11-09T01:00:00Z", "BillingPeriodEnd": "2026-11-16T01:00:00Z",
		"ChargePeriodStart": "2026-11-09T01:00:00Z", "ChargePeriodEnd": "2026-11-16T01:00:00Z",
		"ChargeCategory": "Usage", "ChargeClass": "",
		"ChargeDescription": "Accelerators, processors and memory held by vision/notebook-yuki",
		"ConsumedQuantity":  "1344.000", "ConsumedUnit": "Accelerator-Hours",
		"PricingQuantity": "1344.000", "PricingUnit": "Accelerator-Hours",
		"ContractedCost": "31069.92", "EffectiveCost": "31069.92", "ListCost": "31069.92",
		"InvoiceIssuerName": "Tideline", "ProviderName": "Tideline", "PublisherName": "Tideline",
		"ResourceId": "vision/Pod/notebook-yuki", "ResourceName": "notebook-yuki", "ResourceType": "Pod",
		"ServiceCategory": "AI and Machine Learning", "ServiceName": "Training", "SubAccountId": "vision", "SubAccountName": "vision",
		"Tags":       `{"tideline.io/team":"vision","tideline.io/user":"yuki"}`,
		"x_CpuHours": list[0]["x_CpuHours"], "x_MemoryGiBHours": list[0]["x_MemoryGiBHours"],
		"x_RecoverableCost": "29827.12", "x_Utilization": "0.0040", "x_WastedCost": "30448.52",
	}))
	for i, column := range focusColumns {
		if ours := strings.HasPrefix(column, "x_"); !ours && i > 0 {
			g.Expect(focusColumns[i-1] < column).To(BeTrue(), column)
		}
	}
	mandatory := []string{
		"BilledCost", "BillingAccountId", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory",
		"ChargePeriodEnd", "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity",
		"PricingUnit", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName",
	}
	for _, record := range list {
		for _, column := range mandatory {
			g.Expect(record[column]).NotTo(BeEmpty(), column)
		}
	}
	r := cost.Report{By: map[cost.Dimension][]cost.Row{cost.ByTask: {{CPUHours: decimal.NewFromInt(5)}}}}
	content, err := FOCUS(r, Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(ContainSubstring(",5.000,Core-Hours,"))
}

func TestJSON(t *testing.T) {
	g := NewWithT(t)
	content, err := JSON(week.Report(), Options{Name: "weekly", Revision: 2})
	g.Expect(err).NotTo(HaveOccurred())
	var d map[string]any
	g.Expect(json.Unmarshal(content, &d)).To(Succeed())
	g.Expect(d).To(And(HaveKeyWithValue("schema", "tideline.io/cost-report/v1"), HaveKeyWithValue("revision", 2.0),
		HaveKeyWithValue("from", "2026-11-09T09:00:00+08:00"), HaveKeyWithValue("timeZone", "Asia/Shanghai")))
	g.Expect(d["total"]).To(And(HaveKeyWithValue("cost", "555461.97"), HaveKeyWithValue("recoverable", "148502.56")))
	g.Expect(d["rows"]).To(HaveLen(76))
	g.Expect(d["days"].([]any)[2]).To(HaveKeyWithValue("utilization", BeNil()))
	g.Expect(d["forecast"]).To(HaveKeyWithValue("low", "516579.63"))
	g.Expect(d["waits"]).To(HaveKeyWithValue("longestSeconds", 33600.0))
	g.Expect(d["room"]).To(HaveKeyWithValue("unusable", 0.42))
}

// Every column and field is explained.
func TestFormatsAreDocumented(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../../docs/reports.md")
	g.Expect(err).NotTo(HaveOccurred())
	names := slices.Concat(csvColumns, focusColumns, []string{Schema})
	for _, of := range []any{document{}, entry{}, totals{}, outcome{}, losses{}, day{}, room{}, forecast{}, merges{}, waits{}} {
		for i := range reflect.TypeOf(of).NumField() {
			field, _, _ := strings.Cut(reflect.TypeOf(of).Field(i).Tag.Get("json"), ",")
			names = append(names, field)
		}
	}
	for _, name := range names {
		g.Expect(string(page)).To(ContainSubstring("`" + name + "`"))
	}
}

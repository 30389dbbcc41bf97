package report

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/shopspring/decimal"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/cost"
)

func TestFigures(t *testing.T) {
	g := NewWithT(t)
	r := &cost.Report{Currency: "CNY", Total: cost.Row{
		Cost: decimal.RequireFromString("1234567.895"), Waste: decimal.RequireFromString("0.125"), Recoverable: decimal.Zero,
	}}
	g.Expect(FiguresOf(r)).To(Equal(Figures{Total: "CNY 1,234,567.90", Waste: "CNY 0.12", Recoverable: "CNY 0.00"}))
	g.Expect(NumbersOf(r)).To(Equal(Numbers{Currency: "CNY", Cost: 1234567.9, Waste: ptr.To(0.12), Recoverable: ptr.To(0.0)}))
	r.Total.Utilization = cost.Ratio{Value: 0.415, Known: true}
	r.Room = &cost.Room{Unusable: cost.Ratio{Value: 0, Known: true}}
	g.Expect(NumbersOf(r)).To(And(HaveField("Utilization", HaveValue(Equal(0.415))), HaveField("Unusable", HaveValue(BeZero()))))
	g.Expect(FiguresOf(r)).To(And(HaveField("Utilization", "42 %"), HaveField("Unusable", "0 %")))

	r.Total.Waste, r.Total.Utilization = decimal.Zero, cost.Ratio{}
	g.Expect(FiguresOf(r)).To(And(HaveField("Waste", ""), HaveField("Recoverable", "")), "unknown differs from nothing")
	g.Expect(NumbersOf(r)).To(And(HaveField("Waste", BeNil()), HaveField("Recoverable", BeNil())))
	r.Total.MemoryUtilization = cost.Ratio{Value: 1, Known: true}
	g.Expect(FiguresOf(r)).To(And(HaveField("Waste", "CNY 0.00"), HaveField("Recoverable", "CNY 0.00")))
}

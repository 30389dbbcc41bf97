package report

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
)

func TestALeadersPageHasExactlyTheirPeople(t *testing.T) {
	g := NewWithT(t)
	row := func(user, task string, paid int64) cost.Row {
		return cost.Row{Key: cost.Key{User: user, Task: task}, Cost: decimal.NewFromInt(paid), Pods: 1,
			AcceleratorHours: decimal.NewFromInt(paid), Utilization: cost.Ratio{Value: 0.5, Known: true}}
	}
	from := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	r := cost.Report{
		Period: cost.Period{From: from, To: from.AddDate(0, 0, 7)}, Currency: "CNY", Total: row("", "", 100),
		By: map[cost.Dimension][]cost.Row{
			cost.ByUser: {row("ann@example.com", "", 30), row("max", "", 20), row("zoe", "", 40), row("", "", 10)},
			cost.ByTask: {row("ann@example.com", "nb", 30), row("max", "own", 15), row("zoe", "secret", 40), row("", "shared", 15)},
		},
	}
	page, o := applyOptions(r, Options{Person: "bob", People: []string{"ann@example.com", "max", "unseen"}})
	g.Expect(page.By[cost.ByUser]).To(HaveExactElements(
		HaveField("Key.User", "ann@example.com"), HaveField("Key.User", "max")))
	g.Expect(page.By[cost.ByTask]).To(HaveExactElements(
		HaveField("Key.Task", "nb"), HaveField("Key.Task", "own"), HaveField("Key.Task", sharedTasks)))
	g.Expect(page.Total.Cost.String()).To(Equal("50"))
	g.Expect(page.Total.Pods).To(BeEquivalentTo(2))
	g.Expect(page.Total.Utilization).To(Equal(cost.Ratio{Value: 0.5, Known: true}))
	g.Expect(o.GroupBy).To(Equal([]cost.Dimension{cost.ByUser, cost.ByTask}))
	written, err := ComposeMail(r, Options{Person: "bob", People: []string{"ann@example.com", "max"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written.Subject).To(HavePrefix("What the people of bob used"))
	g.Expect(written.HTML).To(And(ContainSubstring("ann@example.com"), ContainSubstring("the figures of your people only"),
		Not(ContainSubstring("zoe")), Not(ContainSubstring("secret"))))
	for _, file := range written.Attachments {
		g.Expect(string(file.Content)).NotTo(ContainSubstring("zoe"), file.Name)
	}
	none, _ := applyOptions(r, Options{Person: "bob", People: []string{"unseen"}})
	g.Expect(none.By[cost.ByUser]).To(BeEmpty())
	g.Expect(none.Total.Cost.IsZero()).To(BeTrue())
}

func TestTasksWithoutAcceleratorsAreRankedByTheirCPU(t *testing.T) {
	g := NewWithT(t)
	share := func(of float64) cost.Ratio { return cost.Ratio{Value: of, Known: true} }
	row := func(name string, paid int64) cost.Row {
		return cost.Row{Key: cost.Key{User: name}, Cost: decimal.NewFromInt(paid), CPUHours: decimal.NewFromInt(paid)}
	}
	gpus, idle, busy, unseen := row("gpus", 40), row("idle", 30), row("busy", 20), row("unseen", 10)
	gpus.AcceleratorHours, gpus.Utilization, gpus.CPUUtilization = decimal.NewFromInt(4), share(0.5), share(0.01)
	idle.CPUUtilization, busy.CPUUtilization = share(0.04), share(0.9)
	r := cost.Report{Currency: "EUR", By: map[cost.Dimension][]cost.Row{cost.ByUser: {gpus, idle, busy, unseen}}}
	r.Total = cost.Row{Cost: decimal.NewFromInt(100), AcceleratorHours: decimal.NewFromInt(4), Utilization: share(0.5)}
	page := func(top int) [][]string {
		o := Options{Name: "weekly", GroupBy: []cost.Dimension{cost.ByUser}, Rankings: []Ranking{Utilization}, Top: top}
		return rows(byID(t, parse(t, pageOf(g, r, o)), "utilization-user"))
	}
	g.Expect(page(3)).To(Equal([][]string{
		{"idle", "4 % of CPU", "30.00"}, {"gpus", "50 %", "40.00"}, {"busy", "90 % of CPU", "20.00"},
		{"unseen", "unknown", "10.00"}, {"all", "50 %", "100.00"},
	}))
	g.Expect(page(1)[1]).To(Equal([]string{"the other 3", "50 %", "70.00"}), "of those whose accelerators are known")
}

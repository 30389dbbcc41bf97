package report

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/test/testutil/week"
)

// unseen is the row without what is only known where somebody saw what was used.
func unseen(row cost.Row) cost.Row {
	row.Utilization, row.CPUUtilization, row.MemoryUtilization = cost.Ratio{}, cost.Ratio{}, cost.Ratio{}
	row.Waste, row.Recoverable = cost.Row{}.Waste, cost.Row{}.Recoverable
	return row
}

// Without Prometheus the waste is unknown, which differs from none.
func TestWasteWithoutMetricsIsUnknown(t *testing.T) {
	g := NewWithT(t)
	r := week.Report()
	r.Total = unseen(r.Total)
	for _, rows := range r.By {
		for i := range rows {
			rows[i] = unseen(rows[i])
		}
	}
	root := parse(t, pageOf(g, r, Options{Name: "weekly", Top: 2}))
	g.Expect(read(all(root, "header")[0])).To(ContainSubstring("Waste unknown what was used of what was held was not seen"))
	g.Expect(readAll(all(byID(t, root, "findings"), "li"))[0]).To(HavePrefix("What can be saved is unknown"))
	g.Expect(rows(byID(t, root, "waste-team"))).To(Equal([][]string{
		{"the other 5", "unknown", "unknown"}, {"all", "unknown", "unknown"},
	}))
	g.Expect(MailSubject(r, Options{Name: "weekly"})).NotTo(ContainSubstring("recoverable"))

	nothing := regexp.MustCompile(`\b0\.00\b`) // an amount, and no share
	look := func(known bool) {
		for _, rows := range r.By {
			for i := range rows {
				rows[i].MemoryUtilization.Known = known
			}
		}
	}
	for file, write := range map[string]func(cost.Report, Options) ([]byte, error){"CSV": CSV, "JSON": JSON, "FOCUS": FOCUS} {
		before, err := write(r, Options{Name: "weekly"})
		g.Expect(err).NotTo(HaveOccurred())
		look(true)
		after, err := write(r, Options{Name: "weekly"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(nothing.FindAll(after, -1))).To(BeNumerically(">", len(nothing.FindAll(before, -1))),
			"%s says 0 where it is known, and nothing where it is not", file)
		look(false)
	}
}

// One team without figures says nothing about the others.
func TestRowWithoutMetricsHasItsName(t *testing.T) {
	g := NewWithT(t)
	r := week.Report()
	teams := r.By[cost.ByTeam]
	g.Expect(teams).To(HaveLen(5))
	teams[4] = unseen(teams[4])
	root := parse(t, pageOf(g, r, Options{Name: "weekly", Top: 10}))
	said, _ := rowName(cost.ByTeam, teams[4].Key)
	g.Expect(rows(byID(t, root, "waste-team"))[4]).To(Equal([]string{said, "unknown", "unknown"}))
	g.Expect(read(all(root, "header")[0])).To(ContainSubstring("Waste CNY"))
}

// What one task alone can save is not named twice.
func TestAllThatCanBeSaved(t *testing.T) {
	g := NewWithT(t)
	r := week.Report()
	for i, row := range r.By[cost.ByTask] {
		if row.Key.User == "yuki" && row.Key.Task != "notebook-yuki" {
			r.By[cost.ByTask][i].Key.User = "bob"
		}
	}
	for i, row := range r.By[cost.ByUser] {
		if row.Key.User == "yuki" {
			r.By[cost.ByUser][i].Recoverable = largestRow(r.By[cost.ByTask], recoverableOf).Recoverable
		}
	}
	root := parse(t, pageOf(g, r, Options{Name: "weekly"}))
	g.Expect(readAll(all(byID(t, root, "findings"), "li"))[0]).To(HavePrefix(
		"yuki can save most: CNY 29,827. All of it in vision/notebook-yuki."))
}

// The longest bar is that of who wasted most, however little of it can be saved.
func TestBarsAreAsLongAsTheirFigures(t *testing.T) {
	g := NewWithT(t)
	r := week.Report()
	user := largestRow(r.By[cost.ByUser], func(row cost.Row) decimal.Decimal { return row.Waste })
	user.Recoverable = user.Waste.Div(decimal.NewFromInt(4))
	root := parse(t, pageOf(g, r, Options{Name: "weekly"}))
	var bars []string
	for _, bar := range all(all(byID(t, root, "waste-user"), "svg")[0], "rect") {
		bars = append(bars, attribute(bar, "class")+" "+attribute(bar, "width"))
	}
	g.Expect(bars).To(Equal([]string{"track 100%", "w 100%", "a 25%"}))
}

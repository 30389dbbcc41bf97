package report

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// aYear is one in which a pod of alice's held a GPU all the time, and one of bob's for an hour: from half past two in summer to
// half past two in winter, in Berlin.
func aYear() ledger.Entries {
	stay := func(user string, begin, end time.Time) ledger.Stay {
		return ledger.Stay{
			Pod: ledger.Pod{
				UID: user, Namespace: "ads", Name: user, Node: "gpu-0", Profile: "ads", User: user, Kind: "Pod", Task: user,
				Resources: ledger.Resources{"nvidia.com/gpu": 1000},
			},
			Begin: begin, End: end, Final: true, Outcome: ledger.Succeeded,
		}
	}
	return ledger.Entries{Stays: []ledger.Stay{
		stay("alice", time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)),
		stay("bob", time.Date(2024, time.October, 27, 0, 30, 0, 0, time.UTC), time.Date(2024, time.October, 27, 1, 30, 0, 0, time.UTC)),
	}}
}

// calendar are specs of a container whose ledger knows the year.
func calendar(in func() *fixture) {
	BeforeAll(func(ctx SpecContext) {
		list := configMap("calendar", "prices.yaml", priceList("2024-11-01", "30", "2024-10-27", "20", "2024-01-01", "10"))
		Expect(in().Client.Create(ctx, list)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(in().Client.Delete(ctx, list)).To(Succeed()) })
	})

	DescribeTable("behaviour 5: hours and prices are those of the days in Berlin",
		func(ctx SpecContext, name, until string, window time.Duration, total, bob entry, days ...string) {
			f := in()
			d := f.make(ctx, f.report(name, over(window), func(r *v1beta1.CostReport) {
				r.Annotations[v1beta1.AnnotationReportUntil], r.Spec.TimeZone = until, "Europe/Berlin"
				r.Spec.PriceListRef.Name = "calendar"
			}))
			costs := []string{}
			for _, day := range d.Days {
				costs = append(costs, day.From.Format("2006-01-02T15:04Z07:00")+" "+day.Cost)
			}
			Expect(costs).To(Equal(days))
			Expect(d.Total).To(And(HaveField("Cost", total.Cost), HaveField("AcceleratorHours", total.AcceleratorHours)))
			for _, row := range d.Rows {
				if row.User == "bob" {
					Expect(row).To(And(HaveField("Cost", bob.Cost), HaveField("AcceleratorHours", bob.AcceleratorHours)))
				}
			}
			Expect(f.columns(ctx, name)).To(HaveKeyWithValue("Total", HaveSuffix(" "+grouped(total.Cost))))
		},
		Entry("clocks are set back, and the price changes on that day", "back", "2024-10-28T00:00:00+01:00", 72*time.Hour,
			entry{Cost: "1000.00", AcceleratorHours: "74.000"}, entry{Cost: "20.00", AcceleratorHours: "1.000"},
			"2024-10-25T00:00+02:00 240.00", "2024-10-26T00:00+02:00 240.00", "2024-10-27T00:00+02:00 520.00"),
		Entry("clocks are set forward", "forward", "2024-04-01T00:00:00+02:00", 48*time.Hour,
			entry{Cost: "470.00", AcceleratorHours: "47.000"}, entry{},
			"2024-03-30T00:00+01:00 240.00", "2024-03-31T00:00+01:00 230.00"),
		Entry("a month ends with a day of a leap year", "leap", "2024-03-02T00:00:00+01:00", 72*time.Hour,
			entry{Cost: "720.00", AcceleratorHours: "72.000"}, entry{},
			"2024-02-28T00:00+01:00 240.00", "2024-02-29T00:00+01:00 240.00", "2024-03-01T00:00+01:00 240.00"),
		Entry("a month ends, and the price changes then, in the middle of the day of UTC", "month", "2024-11-01T12:00:00+01:00",
			24*time.Hour, entry{Cost: "600.00", AcceleratorHours: "24.000"}, entry{},
			"2024-10-31T12:00+01:00 240.00", "2024-11-01T00:00+01:00 360.00"),
	)
}

// grouped is an amount as people write it.
func grouped(amount string) string {
	if whole := len(amount) - len(".00"); whole > 3 {
		return amount[:whole-3] + "," + amount[whole-3:]
	}
	return amount
}

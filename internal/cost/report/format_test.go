package report

import (
	"math"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
)

// Amounts are rounded half to even, to as many places as the currency has.
func TestAmounts(t *testing.T) {
	for _, c := range []struct{ currency, amount, want string }{
		{"CNY", "0", "0.00"}, {"CNY", "0.005", "0.00"}, {"CNY", "0.015", "0.02"}, {"CNY", "0.025", "0.02"}, {"CNY", "0.0251", "0.03"},
		{"CNY", "999.995", "1,000.00"}, {"CNY", "1234567.891", "1,234,567.89"}, {"CNY", "-1234.5", "-1,234.50"},
		{"CNY", "-0.004", "0.00"},
		{"JPY", "1234.5", "1,234"}, {"JPY", "1235.5", "1,236"}, {"jpy", "999999.5", "1,000,000"},
		{"KWD", "1.0005", "1.000"}, {"KWD", "1.0015", "1.002"}, {"CLF", "1.00005", "1.0000"}, {"credits", "12.345", "12.34"},
	} {
		if have := moneyOf(c.currency).bareAmount(decimal.RequireFromString(c.amount)); have != c.want {
			t.Errorf("%s %s is %s, want %s", c.currency, c.amount, have, c.want)
		}
	}
	cny := moneyOf("CNY")
	for amount, want := range map[string]string{"12.345": "+12.34", "-1200": "−1,200.00", "0.001": "±0", "-0.001": "±0"} {
		if have := cny.signedAmount(decimal.RequireFromString(amount)); have != want {
			t.Errorf("a change of %s is %s, want %s", amount, have, want)
		}
	}
	if have := moneyOf("X\x00" + strings.Repeat("y", 100)).code; len(have) > 20 || strings.Contains(have, "\x00") {
		t.Errorf("the code of a currency is %q", have)
	}
}

func TestPercent(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0 %", 0.0001: "<1 %", 0.00499: "<1 %", 0.005: "<1 %", 0.125: "12 %", 0.135: "14 %", 0.994: "99 %", 0.995: ">99 %",
		0.9999: ">99 %", 1: "100 %", 12.5: "1,250 %", math.NaN(): unknown, math.Inf(1): unknown,
	} {
		if have := strings.ReplaceAll(formatPercent(cost.Ratio{Value: value, Known: true}), blank, " "); have != want {
			t.Errorf("%v is %s, want %s", value, have, want)
		}
	}
	if have := formatPercent(cost.Ratio{Value: 0.5}); have != unknown {
		t.Errorf("what is not known is %s", have)
	}
}

func TestLengths(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 12*time.Second + time.Millisecond: "12 s", 4*time.Minute + 10*time.Second: "4 min 10 s", time.Hour: "1 h",
		9*time.Hour + 20*time.Minute + 50*time.Second: "9 h 20 min", 47 * time.Hour: "47 h", 76 * time.Hour: "3 d 4 h",
	} {
		if have := strings.ReplaceAll(formatDuration(d), blank, " "); have != want {
			t.Errorf("%s is %s, want %s", d, have, want)
		}
	}
	for h, want := range map[string]string{"0.25": "0.2 h", "99.95": "100.0 h", "1234.5": "1,234 h"} {
		if have := strings.ReplaceAll(formatHours(decimal.RequireFromString(h)), blank, " "); have != want {
			t.Errorf("%s hours are %s, want %s", h, have, want)
		}
	}
}

// A period says its zone, also where the clocks change within it.
func TestPeriods(t *testing.T) {
	g := NewWithT(t)
	berlin, err := time.LoadLocation("Europe/Berlin")
	g.Expect(err).NotTo(HaveOccurred())
	for _, c := range []struct {
		from       time.Time
		days       int
		said, zone string
	}{
		{time.Date(2026, 10, 19, 0, 0, 0, 0, berlin), 7, "19–25 Oct 2026", "Europe/Berlin (UTC+02:00, then UTC+01:00)"},
		{time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), 7, "30 Nov–6 Dec 2026", "UTC (UTC+00:00)"},
		{time.Date(2026, 12, 28, 9, 0, 0, 0, time.UTC), 7, "28 Dec 2026–4 Jan 2027", "UTC (UTC+00:00)"},
		{time.Date(2026, 12, 28, 0, 0, 0, 0, time.FixedZone("", 3600)), 1, "28 Dec 2026", "UTC+01:00"},
	} {
		p := cost.Period{From: c.from, To: c.from.AddDate(0, 0, c.days)}
		g.Expect(formatDays(p)).To(Equal(c.said))
		g.Expect(zoneName(p)).To(Equal(c.zone))
	}
}

// Axes begin at zero, reach the largest value, and have few steps.
func TestTicks(t *testing.T) {
	g := NewWithT(t)
	for _, largest := range []float64{0, 0.003, 0.7, 1, 4.2, 9.9, 10, 32, 100, 101, 8e4, 999_999, 2.3e7, math.NaN(), math.Inf(1)} {
		list := axisTicks(largest)
		g.Expect(list[0].Value).To(BeZero())
		g.Expect(len(list)).To(And(BeNumerically(">=", 3), BeNumerically("<=", 7)), "%v: %v", largest, list)
		if last := list[len(list)-1].Value; !math.IsNaN(largest) && !math.IsInf(largest, 0) {
			g.Expect(last).To(BeNumerically(">=", largest))
			g.Expect(last).To(BeNumerically("<=", max(1, 2*largest)))
		}
	}
	g.Expect(axisTicks(2.3e7)[1].Label).To(Equal("5" + blank + "M"))
}

package cost

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const example = `
currency: CNY
prices:
- validFrom: "2026-01-01"
  cpuCoreHour: "0.22"
  memoryGiBHour: "0.03"
  accelerators:
  - {resource: nvidia.com/gpu, hourly: "8.50", surplusDiscount: "0.40"}
  - {resource: nvidia.com/gpu, model: A100, hourly: "21.00"}
`

func TestPriceListsThatAreWrong(t *testing.T) {
	wrong := func(old, other string) string {
		if !strings.Contains(example, old) {
			panic(old)
		}
		return strings.Replace(example, old, other, 1)
	}
	node := func(fields string) string {
		return example + "  nodes:\n  - {resource: nvidia.com/gpu, model: H100, devices: 8, cpuCores: 96, memoryGiB: 768, " +
			`hourly: "100"` + fields + "}\n"
	}
	for list, says := range map[string]string{
		"":                 "it is empty: begin it with currency and prices.",
		"[]":               "it is not a mapping of fields: begin it with currency and prices.",
		"a: b: c":          "it is not YAML: mapping values are not allowed in this context: correct it there.",
		example + "x: 1\n": "x is not a field: there may be currency, prices.",
		wrong("hourly", "hourlly"): "prices[0].accelerators[0].hourlly is not a field: there may be hourly, model, resource, " +
			"surplusDiscount.",
		wrong(`"8.50"`, "8.50"):           `prices[0].accelerators[0].hourly is 8.5: it must be text: put it in quotes.`,
		wrong("CNY", "XYZ"):               `currency is "XYZ": it must be a currency by its three letters of ISO 4217, as CNY or EUR`,
		wrong("CNY", "cny"):               `currency is "cny": it must be a currency by its three letters of ISO 4217, as CNY or EUR`,
		wrong("currency: CNY", ""):        `currency is "": it must be a currency by its three letters of ISO 4217, as CNY or EUR`,
		"currency: CNY":                   "prices lists nothing: say from when on what costs how much",
		wrong("2026-01-01", "2026-02-30"): `prices[0].validFrom is "2026-02-30": it must be a day, as 2026-01-01`,
		wrong(`"2026-01-01"`, `""`):       `prices[0].validFrom is "": it must be a day, as 2026-01-01`,
		example + "- {validFrom: \"2026-01-01\", cpuCoreHour: \"1\", memoryGiBHour: \"1\"}": `prices[1].validFrom is "2026-01-01": ` +
			"prices[0] holds from that day on too: leave one, or change its day",
		wrong(`"0.22"`, `"-3"`):        `prices[0].cpuCoreHour is "-3": it is negative: a price is 0 or more`,
		wrong(`"0.22"`, `"three"`):     `prices[0].cpuCoreHour is "three": it must be a decimal, as "8.50"`,
		wrong(`"0.22"`, `"1e3"`):       `prices[0].cpuCoreHour is "1e3": it must be a decimal, as "8.50"`,
		wrong(`"0.22"`, `"0,22"`):      `prices[0].cpuCoreHour is "0,22": it must be a decimal, as "8.50"`,
		wrong(`"0.22"`, `"0.0000001"`): `prices[0].cpuCoreHour is "0.0000001": it may have 6 digits behind the point`,
		wrong(`"0.22"`, `"1000000001"`): `prices[0].cpuCoreHour is "1000000001": a price is 1000000000 at most: see whether the ` +
			"currency and the point are right",
		wrong("  cpuCoreHour: \"0.22\"\n", ""): `prices[0].cpuCoreHour is missing: say what it costs, "0" for nothing, or under ` +
			"nodes what whole nodes cost",
		wrong("  memoryGiBHour: \"0.03\"\n", ""): `prices[0].memoryGiBHour is missing: say what it costs, "0" for nothing, or under ` +
			"nodes what whole nodes cost",
		wrong(`hourly: "8.50", `, ""): `prices[0].accelerators[0].hourly is missing: say what an hour costs, "0" for nothing`,
		wrong(`"0.40"`, `"1.01"`):     `prices[0].accelerators[0].surplusDiscount is "1.01": a discount is a share from 0 to 1`,
		wrong(`"0.40"`, `"-0.1"`):     `prices[0].accelerators[0].surplusDiscount is "-0.1": a discount is a share from 0 to 1`,
		wrong(", model: A100", ""): `prices[0].accelerators[1].resource is "nvidia.com/gpu": prices[0].accelerators[0] has the price ` +
			`of this resource and model "" already: leave one`,
		wrong("nvidia.com/gpu", "cpu"): `prices[0].accelerators[0].resource is "cpu": it must name the resource of an accelerator as ` +
			"nodes do, for example nvidia.com/gpu",
		wrong("{resource: nvidia.com/gpu, hourly", "{hourly"): `prices[0].accelerators[0].resource is "": it must name the resource ` +
			"of an accelerator as nodes do, for example nvidia.com/gpu",
		strings.Replace(node(""), "H100", "A100", 1): `prices[0].nodes[0].resource is "nvidia.com/gpu": prices[0].accelerators[1] ` +
			`has the price of this resource and model "A100" already: leave one`,
		strings.Replace(node(""), "devices: 8", "devices: 0", 1): "prices[0].nodes[0].devices is 0: it must be from 1 to 1000000, " +
			"what the node has",
		strings.Replace(node(""), "cpuCores: 96, ", "", 1): "prices[0].nodes[0].cpuCores is 0: it must be from 1 to 1000000, " +
			"what the node has",
		strings.Replace(node(""), "memoryGiB: 768", "memoryGiB: 1000001", 1): "prices[0].nodes[0].memoryGiB is 1000001: it must be " +
			"from 1 to 1000000, what the node has",
		example + strings.Repeat("#", MaxPriceList): "the price list has 262388 bytes: it may have 262144; remove prices of years " +
			"that no report is about",
	} {
		_, err := ParsePrices([]byte(list))
		NewWithT(t).Expect(err).To(MatchError(says), "%.300s", list)
	}
	g := NewWithT(t)
	_, err := ParsePrices([]byte(wrong(`"0.22"`, `"-1"`) + "- {validFrom: never}\n- {validFrom: never}"))
	g.Expect(strings.Split(err.Error(), "\n")).To(HaveLen(7), "all that is wrong: %v", err)
	for _, right := range []string{example, node(""), node(`, surplusDiscount: "1"`), strings.NewReplacer(
		"  cpuCoreHour: \"0.22\"\n", "", "  memoryGiBHour: \"0.03\"\n", "").Replace(node(""))} {
		_, err := ParsePrices([]byte(right))
		g.Expect(err).NotTo(HaveOccurred())
	}
}

func TestMoneyIsRoundedHalfToEven(t *testing.T) {
	g := NewWithT(t)
	for amount, want := range map[string]string{"0.125": "0.12", "0.135": "0.14", "0.1250001": "0.13", "-0.125": "-0.12", "7": "7"} {
		g.Expect(RoundAmount(d(amount), "CNY")).To(equal(want))
	}
	g.Expect(RoundAmount(d("12.5"), "JPY")).To(equal("12"))
	g.Expect(RoundAmount(d("1.0005"), "KWD")).To(equal("1"))
	g.Expect(RoundAmount(d("1.005"), "nothing")).To(equal("1"))
}

func TestPeriodsFollowOneAnother(t *testing.T) {
	g := NewWithT(t)
	berlin := zone("Europe/Berlin")
	monday := time.Date(2026, time.November, 2, 9, 0, 0, 0, berlin)
	week := 168 * time.Hour
	last := PeriodUntil(monday, week, berlin)
	g.Expect(last.From).To(Equal(time.Date(2026, time.October, 26, 9, 0, 0, 0, berlin)))
	before := PeriodUntil(last.From.UTC(), week, berlin)
	g.Expect(before.To.Equal(last.From)).To(BeTrue())
	g.Expect(before.From).To(Equal(time.Date(2026, time.October, 19, 9, 0, 0, 0, berlin)), "over a day of 25 hours")
	g.Expect(before.To.Sub(before.From)).To(Equal(week + time.Hour))
	g.Expect(PeriodUntil(monday, 30*time.Hour, berlin).From).To(Equal(time.Date(2026, time.November, 1, 3, 0, 0, 0, berlin)))

	hours := func(cuts []time.Time) []string {
		var said []string
		for _, cut := range cuts {
			said = append(said, cut.Format("02 15:04"))
		}
		return said
	}
	g.Expect(hours(PeriodUntil(time.Date(2026, time.October, 26, 0, 30, 0, 0, berlin), 48*time.Hour, berlin).CutTimes())).To(Equal(
		[]string{"24 00:30", "24 02:00", "25 00:00", "25 02:00", "26 00:00", "26 00:30"}))
	g.Expect(hours(PeriodUntil(monday.UTC(), 24*time.Hour, time.UTC).CutTimes())).To(Equal([]string{"01 08:00", "02 00:00",
		"02 08:00"}))

	// A day that never was.
	apia := PeriodUntil(time.Date(2012, time.January, 1, 1, 0, 0, 0, time.UTC), 96*time.Hour, zone("Pacific/Apia"))
	g.Expect(hours(apia.CutTimes())).To(ContainElements("29 00:00", "31 00:00"))

	// Clocks that are set at midnight: a day that begins at one, and one that has two midnights.
	for name, c := range map[string]struct {
		to   time.Time
		want []string
	}{
		"Africa/Cairo":   {time.Date(2026, time.April, 24, 12, 0, 0, 0, time.UTC), []string{"24 01:00"}},
		"America/Havana": {time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC), []string{"01 00:00"}},
	} {
		z := zone(name)
		p := PeriodUntil(c.to, 24*time.Hour, z)
		var midnights []string
		for _, cut := range p.CutTimes()[1 : len(p.CutTimes())-1] {
			if cut.UTC().Hour() != 0 {
				midnights = append(midnights, cut.Format("02 15:04"))
				g.Expect(cut.Add(-time.Second).Day()).NotTo(Equal(cut.Day()), name)
			}
		}
		g.Expect(midnights).To(Equal(c.want), name)
	}
}

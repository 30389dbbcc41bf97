package report

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/text"
)

const (
	unknown = "unknown"
	// blank keeps a figure and its unit on one line.
	blank = "\u00a0"
	// longestName is how many bytes of a name people are shown. Names of Kubernetes are shorter; what users write may be longer.
	longestName = 100
)

// money writes amounts of a currency.
type money struct {
	code   string
	places int32
}

func moneyOf(currency string) money {
	return money{text.ClipLine(currency, 12), cost.MinorUnits(strings.ToUpper(currency))}
}

// plainAmount is an amount for programs: 12345.60.
func (m money) plainAmount(d decimal.Decimal) string { return d.StringFixedBank(m.places) }

// wastedAmounts are waste and recoverable cost of a row; empty if unknown.
func (m money) wastedAmounts(row cost.Row) (waste, recoverable string) {
	if !hasKnownUse(row) {
		return "", ""
	}
	return m.plainAmount(row.Waste), m.plainAmount(row.Recoverable)
}

// bareAmount is an amount where its currency is in a heading: 12,345.60.
func (m money) bareAmount(d decimal.Decimal) string { return groupThousands(m.plainAmount(d)) }

// withCurrency is an amount with its currency: CNY 12,345.60.
func (m money) withCurrency(d decimal.Decimal) string { return m.addCurrency(m.bareAmount(d)) }

// roundAmount is an amount in whole units, for subjects and sentences in which hundredths say nothing.
func (m money) roundAmount(d decimal.Decimal) string {
	return m.addCurrency(groupThousands(d.StringFixedBank(0)))
}

// addCurrency puts the currency before a number, if there is one.
func (m money) addCurrency(number string) string {
	if m.code == "" {
		return number
	}
	return m.code + blank + number
}

// signedAmount is an amount with its sign: +1,200.00.
func (m money) signedAmount(d decimal.Decimal) string {
	s := m.bareAmount(d)
	if strings.Trim(s, "-0.") == "" {
		return "±0"
	}
	if d.IsPositive() {
		return "+" + s
	}
	return "−" + strings.TrimPrefix(s, "-")
}

// groupThousands separates a decimal number's.
func groupThousands(s string) string {
	sign := ""
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		sign, s = "-", rest
	}
	whole, fraction, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}

func formatCount(n int64) string { return groupThousands(strconv.FormatInt(n, 10)) }

// formatHours of devices: one decimal place where there are few.
func formatHours(d decimal.Decimal) string {
	if d.Abs().LessThan(decimal.NewFromInt(100)) {
		return groupThousands(d.StringFixedBank(1)) + blank + "h"
	}
	return groupThousands(d.StringFixedBank(0)) + blank + "h"
}

// isKnown says whether a share is one that can be shown.
func isKnown(s cost.Ratio) bool { return s.Known && !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) }

// formatPercent is a share in whole percent. A small share does not become 0, and an unknown one says so.
func formatPercent(s cost.Ratio) string {
	switch p := s.Value * 100; {
	case !isKnown(s):
		return unknown
	case p > 0 && p <= 0.5:
		return "<1" + blank + "%"
	case p < 100 && p >= 99.5:
		return ">99" + blank + "%"
	default:
		return groupThousands(strconv.FormatFloat(math.RoundToEven(p), 'f', 0, 64)) + blank + "%"
	}
}

// ratioOf of a whole; unknown where there is no whole.
func ratioOf(part, whole decimal.Decimal) cost.Ratio {
	if !whole.IsPositive() {
		return cost.Ratio{}
	}
	return cost.Ratio{Value: part.Div(whole).InexactFloat64(), Known: true}
}

// barWidth of a bar in percent, of at most 100.
func barWidth(s cost.Ratio) float64 {
	if !isKnown(s) {
		return 0
	}
	return math.Round(1000*min(max(s.Value, 0), 1)) / 10
}

// formatDuration of a time in its two largest units.
func formatDuration(d time.Duration) string {
	d = d.Round(time.Second)
	units := func(n time.Duration, large string, m time.Duration, small string) string {
		s := strconv.FormatInt(int64(n), 10) + blank + large
		if m > 0 {
			s += " " + strconv.FormatInt(int64(m), 10) + blank + small
		}
		return s
	}
	switch {
	case d < time.Minute:
		return units(d/time.Second, "s", 0, "")
	case d < time.Hour:
		return units(d/time.Minute, "min", d%time.Minute/time.Second, "s")
	case d < 48*time.Hour:
		return units(d/time.Hour, "h", d%time.Hour/time.Minute, "min")
	default:
		return units(d/(24*time.Hour), "d", d%(24*time.Hour)/time.Hour, "h")
	}
}

// formatMoment is a time of day of the report's zone.
func formatMoment(t time.Time) string { return t.Format("Mon 2 Jan 2006 15:04") }

// formatDays are those of a period, from the first to the last.
func formatDays(p cost.Period) string {
	last := p.To
	if last.After(p.From) {
		last = last.Add(-time.Nanosecond)
	}
	switch {
	case p.From.Year() != last.Year():
		return p.From.Format("2 Jan 2006") + "–" + last.Format("2 Jan 2006")
	case p.From.Month() != last.Month():
		return p.From.Format("2 Jan") + "–" + last.Format("2 Jan 2006")
	case p.From.Day() != last.Day():
		return p.From.Format("2") + "–" + last.Format("2 Jan 2006")
	default:
		return last.Format("2 Jan 2006")
	}
}

// zoneName is the name of a period's time zone, with what it is ahead of UTC.
func zoneName(p cost.Period) string {
	from, to := p.From.Format("UTC-07:00"), p.To.Format("UTC-07:00")
	if from != to {
		from += ", then " + to
	}
	name := p.From.Location().String()
	if name == "Local" || name == "" {
		return from
	}
	return name + " (" + from + ")"
}

// rowName is what a row is called, and detail what is said beside it.
func rowName(dimension cost.Dimension, k cost.Key) (name, detail string) {
	switch dimension {
	case cost.ByUser:
		return clipName(cmp.Or(k.User, "unattributed")), clipName(k.Team)
	case cost.ByTeam:
		return clipName(cmp.Or(k.Team, "no team")), ""
	default:
		task := cmp.Or(k.Task, "no task")
		if k.Namespace != "" {
			// Each by itself, so that a long namespace does not hide the task.
			return clipName(k.Namespace) + "/" + clipName(task), taskKind(k)
		}
		return clipName(task), taskKind(k)
	}
}

// taskKind says what a task is where it is not a job for training, and whose it is.
func taskKind(k cost.Key) string {
	parts := make([]string, 0, 2)
	if k.Kind != "" && k.Kind != "ElasticTrainingJob" {
		parts = append(parts, clipName(k.Kind))
	}
	if k.User != "" {
		parts = append(parts, clipName(k.User))
	}
	return strings.Join(parts, ", ")
}

// clipName is what people see of what users wrote.
func clipName(s string) string { return text.ClipLine(s, longestName) }

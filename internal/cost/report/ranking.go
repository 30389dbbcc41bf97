package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
)

// worthwhile is the share of the total from which on a low utilization matters: at a hundredth, a full ranking is of what counts.
var worthwhile = decimal.New(1, -2)

// hasKnownUse tells whether the use of anything in a row is known. Without it the waste is unknown, which differs from none.
func hasKnownUse(row cost.Row) bool {
	return isKnown(row.Utilization) || isKnown(row.CPUUtilization) || isKnown(row.MemoryUtilization) || row.Waste.IsPositive()
}

// inUse is what was in use of what a row held: of the time of its accelerators or, where it had none, of its CPU.
func inUse(row cost.Row) cost.Ratio {
	if row.AcceleratorHours.IsPositive() || isKnown(row.Utilization) {
		return row.Utilization
	}
	return row.CPUUtilization
}

// rankRows puts rows in the order of a ranking. others has the rows that are not ranked: they cost too little for their
// utilization to matter, or their use is unknown.
func rankRows(rows []cost.Row, by Ranking, total decimal.Decimal) (ranked, others []*cost.Row) {
	least := total.Mul(worthwhile)
	for i := range rows {
		row := &rows[i]
		if by == Utilization && (!isKnown(inUse(*row)) || row.Cost.LessThan(least)) || by == Waste && !hasKnownUse(*row) {
			others = append(others, row)
		} else {
			ranked = append(ranked, row)
		}
	}
	slices.SortFunc(ranked, func(a, b *cost.Row) int {
		first := 0
		switch by {
		case Utilization:
			first = cmp.Compare(inUse(*a).Value, inUse(*b).Value)
		case Waste:
			first = b.Waste.Cmp(a.Waste)
		case Cost:
		}
		if first != 0 {
			return first
		}
		return cmp.Or(b.Cost.Cmp(a.Cost), compareKeys(a.Key, b.Key))
	})
	return ranked, others
}

func compareKeys(a, b cost.Key) int {
	return cmp.Or(strings.Compare(a.Team, b.Team), strings.Compare(a.User, b.User), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Kind, b.Kind), strings.Compare(a.Task, b.Task))
}

// sumRows adds rows up. Its utilization covers the time for which use is known.
func sumRows(rows []*cost.Row) cost.Row {
	var s cost.Row
	var used, held float64
	before := decimal.Zero
	for _, row := range rows {
		s.Cost, s.Waste, s.Recoverable = s.Cost.Add(row.Cost), s.Waste.Add(row.Waste), s.Recoverable.Add(row.Recoverable)
		if row.Before != nil {
			before = before.Add(*row.Before)
			s.Before = &before
		}
		s.MemoryUtilization.Known = s.MemoryUtilization.Known || hasKnownUse(*row) // of some, which is enough to speak of waste
		if isKnown(row.Utilization) {
			h := row.AcceleratorHours.InexactFloat64()
			used, held = used+h*row.Utilization.Value, held+h
		}
	}
	if held > 0 {
		s.Utilization = cost.Ratio{Value: used / held, Known: true}
	}
	return s
}

// table is a ranking as readers see it.
type table struct {
	// ID is one word, for anchors.
	ID string
	// Caption says what is first, and Rule what is in it.
	Caption, Rule string
	// Of is what rows are of, Main and Second what their two figures are.
	Of, Main, Second string
	Lines            []line
}

// line is a row of a table: its name, and two figures, the first of them with a bar.
type line struct {
	// Sum is empty for one row, "others" for those that are not shown, and "all" for the total.
	Sum          string
	Name, Detail string
	Main, Second string
	// Barred is true if there is a bar. Whole is its length in percent of the width, and Part the accented part in percent of
	// the width.
	Barred      bool
	Whole, Part float64
}

// captions of rankings: what is first, and what the two figures are.
var captions = map[Ranking]struct{ caption, main, second string }{
	Utilization: {"Used least", "In use", "Cost"},
	Cost:        {"Highest cost", "Cost", "Since last time"},
	Waste:       {"Wasted most", "Waste", "Recoverable"},
}

// tabulate makes a table of the first rows of a ranking of a dimension.
func (v *viewer) tabulate(dimension cost.Dimension, by Ranking) table {
	rows := v.report.By[dimension]
	ranked, others := rankRows(rows, by, v.report.Total.Cost)
	shown := ranked[:min(v.options.Top, len(ranked))]
	others = slices.Concat(ranked[len(shown):], others)

	words := captions[by]
	t := table{
		ID: strings.ToLower(string(by)) + "-" + string(dimension), Caption: words.caption, Of: dimensionHeading(dimension),
		Main: words.main, Second: words.second,
	}
	switch by {
	case Utilization:
		t.Rule = "Time in use, of the time that accelerators were held, where at least 1" + blank + "% of the total was spent. " +
			"Where none were held, CPU in use, of what was requested."
		t.Second += ", " + v.money.code
	case Cost:
		t.Rule = "Everything that was held, at the prices of its day."
		t.Main += ", " + v.money.code
	case Waste:
		t.Rule = "Requested and not used. The coloured part is recoverable: sizing would not have granted it."
		t.Main += ", " + v.money.code
	}
	scale := decimal.Zero
	for _, row := range shown {
		scale = decimal.Max(scale, barAmount(*row, by))
	}
	for _, row := range shown {
		l, key := v.tableLine(*row, by, scale), row.Key
		if v.options.isPersonal() {
			key.User = ""
		}
		l.Name, l.Detail = rowName(dimension, key)
		t.Lines = append(t.Lines, l)
	}
	if len(others) > 0 {
		l := v.tableLine(sumRows(others), by, decimal.Zero)
		l.Name, l.Sum = "the other "+formatCount(int64(len(others))), "others"
		if len(others) == 1 { // as long as its name
			l.Name, l.Detail = rowName(dimension, others[0].Key)
		}
		t.Lines = append(t.Lines, l)
	}
	all := v.tableLine(v.report.Total, by, decimal.Zero)
	all.Name, all.Sum = "all", "all"
	t.Lines = append(t.Lines, all)
	return t
}

// barAmount is the amount that the bar of a row shows.
func barAmount(row cost.Row, by Ranking) decimal.Decimal {
	switch by {
	case Cost:
		return row.Cost
	case Waste:
		return row.Waste
	default:
		return decimal.Zero
	}
}

// tableLine writes the figures of a row; bars are of scale, and there are none where it is zero.
func (v *viewer) tableLine(row cost.Row, by Ranking, scale decimal.Decimal) line {
	l := line{Barred: scale.IsPositive()}
	switch by {
	case Utilization:
		used := inUse(row)
		l.Main, l.Second = formatPercent(used), v.money.bareAmount(row.Cost)
		if isKnown(used) && !isKnown(row.Utilization) {
			l.Main += " of CPU"
		}
		l.Barred, l.Part = isKnown(used), barWidth(used)
		l.Whole = l.Part
	case Cost:
		l.Main, l.Second = v.money.bareAmount(row.Cost), v.changeSince(row)
		l.Part = barWidth(ratioOf(row.Cost, scale))
		l.Whole = l.Part
	case Waste:
		l.Main, l.Second = unknown, unknown
		if hasKnownUse(row) {
			l.Main, l.Second = v.money.bareAmount(row.Waste), v.money.bareAmount(row.Recoverable)
		}
		l.Whole, l.Part = barWidth(ratioOf(row.Waste, scale)), barWidth(ratioOf(row.Recoverable, scale))
	}
	return l
}

// changeSince says how the cost of a row changed.
func (v *viewer) changeSince(row cost.Row) string {
	if row.Before == nil {
		return "new or " + unknown
	}
	return v.money.signedAmount(row.Cost.Sub(*row.Before))
}

// dimensionHeading names a dimension.
func dimensionHeading(dimension cost.Dimension) string {
	switch dimension {
	case cost.ByUser:
		return "User"
	case cost.ByTeam:
		return "Team"
	default:
		return "Task"
	}
}

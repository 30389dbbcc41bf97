package report

import (
	"cmp"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
)

// unreported names the rows of which no progress is known.
const unreported = "without progress"

// goodputGroup is what became of GPU time, by queue and by each dimension; false where no training reports its progress.
func (v *viewer) goodputGroup() (group, bool) {
	total := v.report.Total.Goodput
	if !total.IsKnown() {
		return group{}, false
	}
	g := group{ID: "goodput", Heading: "GPU time that became steps"}
	if len(v.report.Queues) > 0 {
		lines := make([]goodputLine, 0, len(v.report.Queues))
		for _, q := range v.report.Queues {
			lines = append(lines, goodputLine{cmp.Or(clipName(q.Name), "no queue"), "", q.Goodput})
		}
		g.Tables = append(g.Tables, v.tabulateGoodput("queue", "Queue", lines))
	}
	for _, dimension := range v.options.GroupBy {
		rows := v.report.By[dimension]
		lines := make([]goodputLine, 0, len(rows))
		for i := range rows {
			key := rows[i].Key
			if v.options.isPersonal() {
				key.User = ""
			}
			said, detail := rowName(dimension, key)
			lines = append(lines, goodputLine{said, detail, rows[i].Goodput})
		}
		if len(lines) > 0 {
			g.Tables = append(g.Tables, v.tabulateGoodput(string(dimension), dimensionHeading(dimension), lines))
		}
	}
	return g, true
}

type goodputLine struct {
	name, detail string
	cost.Goodput
}

// tabulateGoodput makes a table of the first lines, by how much GPU time was not kept. Lines of which nothing is known are one.
func (v *viewer) tabulateGoodput(id, of string, lines []goodputLine) table {
	t := table{
		ID: "goodput-" + id, Caption: "Kept least", Of: of, Main: "Kept", Second: "Lost, GPU hours",
		Rule: "Share of the GPU time of trainings that report progress that became steps which stand. The most hours that did not " +
			"are first.",
	}
	known := slices.DeleteFunc(slices.Clone(lines), func(l goodputLine) bool { return !l.IsKnown() })
	slices.SortStableFunc(known, func(a, b goodputLine) int { return b.Held.Sub(b.Kept).Cmp(a.Held.Sub(a.Kept)) })
	var all cost.Goodput
	shown := known[:min(v.options.Top, len(known))]
	for _, l := range known {
		all = all.AddGoodput(l.Goodput)
	}
	others := all
	for _, l := range shown {
		others = others.WithoutPart(l.Goodput)
		t.Lines = append(t.Lines, goodputRow(l, ""))
	}
	if more := len(known) - len(shown); more > 0 {
		l := goodputLine{"the other " + formatCount(int64(more)), "", others}
		t.Lines = append(t.Lines, goodputRow(l, "others"))
	}
	if silent := len(lines) - len(known); silent > 0 {
		l := goodputLine{formatCount(int64(silent)) + " " + unreported, "", cost.Goodput{}}
		t.Lines = append(t.Lines, goodputRow(l, "others"))
	}
	t.Lines = append(t.Lines, goodputRow(goodputLine{"all", "", all}, "all"))
	return t
}

func goodputRow(l goodputLine, sum string) line {
	row := line{Sum: sum, Name: l.name, Detail: l.detail, Main: unknown, Second: unknown}
	if l.IsKnown() {
		row.Main, row.Second = formatPercent(l.KeptShare()), l.Lost.StringFixedBank(1)
		row.Barred, row.Part = sum == "", barWidth(l.KeptShare())
		row.Whole = row.Part
	}
	return row
}

// goodputCells are share, and GPU-hours held, kept and lost, for programs; empty where they are unknown.
func goodputCells(g cost.Goodput) []string {
	if !g.IsKnown() {
		return []string{"", "", "", ""}
	}
	return []string{formatRatio(g.KeptShare()), plainHours(g.Held), plainHours(g.Kept), plainHours(g.Lost)}
}

func plainHours(hours decimal.Decimal) string { return hours.StringFixedBank(3) }

// progress is what became of GPU time, for programs: a share, and hours.
type progress struct {
	Goodput *float64 `json:"goodput"`
	Held    string   `json:"heldGPUHours"`
	Kept    string   `json:"keptGPUHours"`
	Lost    string   `json:"lostGPUHours"`
}

// toProgress is nil for what is unknown.
func toProgress(g cost.Goodput) *progress {
	if !g.IsKnown() {
		return nil
	}
	return &progress{nullableShare(g.KeptShare()), plainHours(g.Held), plainHours(g.Kept), plainHours(g.Lost)}
}

package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
)

// view is all that people read, in words and figures as they are shown. The page, the mail and its text are the same view.
type view struct {
	Title, Period, Zone, Revision string
	Figures                       []figure
	Findings                      []finding
	Groups                        []group
	Charts                        []chart
	// Outcomes are costs by how pods ended; nil on personal pages.
	Outcomes *table
	Facts    []fact
	Notes    []string
}

// figure is one of the large ones.
type figure struct{ Label, Value, Note string }

// finding stands out: what is so, and what to do.
type finding struct{ What, Do string }

// group is the rankings of a dimension.
type group struct {
	ID, Heading string
	Tables      []table
}

// fact is what is said in a sentence or two.
type fact struct{ Label, Value, Note string }

// viewer makes a view.
type viewer struct {
	report  cost.Report
	options Options
	money   money
}

// makeView makes the view of a report.
func makeView(r cost.Report, o Options) view {
	r, o = applyOptions(r, o)
	v := &viewer{report: r, options: o, money: moneyOf(r.Currency)}
	w := view{
		Title: v.title(), Period: formatMoment(r.Period.From) + " to " + formatMoment(r.Period.To), Zone: zoneName(r.Period),
		Figures: v.keyFigures(), Findings: v.findings(), Charts: v.dailyCharts(), Facts: v.clusterFacts(), Notes: v.viewNotes(),
	}
	if o.Revision > 1 {
		w.Revision = fmt.Sprintf("Revision %d. It replaces the earlier report of the same period.", o.Revision)
	}
	for _, dimension := range o.GroupBy {
		if len(r.By[dimension]) == 0 {
			continue
		}
		g := group{ID: string(dimension), Heading: "By " + strings.ToLower(dimensionHeading(dimension))}
		for _, by := range o.Rankings {
			g.Tables = append(g.Tables, v.tabulate(dimension, by))
		}
		w.Groups = append(w.Groups, g)
	}
	if g, known := v.goodputGroup(); known {
		w.Groups = append(w.Groups, g)
	}
	if len(r.Outcomes) > 0 {
		w.Outcomes = v.outcomeTable()
	}
	return w
}

func (v *viewer) title() string {
	if v.options.Person != "" {
		return v.options.whose(clipName(v.options.Person))
	}
	if v.options.Name == "" {
		return "What the cluster cost"
	}
	return "What the cluster cost: " + clipName(v.options.Name)
}

// keyFigures are what the period comes to.
func (v *viewer) keyFigures() []figure {
	total := v.report.Total
	list := []figure{{"Cost", v.money.withCurrency(total.Cost), v.totalChangeNote()}}
	used := figure{"In use", formatPercent(total.Utilization), "of the time that accelerators were held"}
	waste := figure{"Waste", unknown, "what was used of what was held was not seen"}
	if hasKnownUse(total) {
		waste.Value, waste.Note = v.money.withCurrency(total.Waste), v.money.withCurrency(total.Recoverable)+" of it recoverable"
		if s := ratioOf(total.Waste, total.Cost); isKnown(s) {
			waste.Note = formatPercent(s) + " of the cost; " + waste.Note
		}
	}
	if before := v.report.Before; before != nil && v.options.Person == "" {
		used.Note += "; " + formatPercent(before.Utilization) + " last time"
	}
	list = append(list, used, waste)
	if v.options.Person != "" {
		return append(list, figure{"Held", formatHours(total.AcceleratorHours), "of accelerators, in " + formatCount(total.Pods) +
			" pods"})
	}
	if room := v.report.Room; room != nil {
		list = append(list, figure{
			"Free, but unusable", formatPercent(room.Unusable),
			fmt.Sprintf("of %.1f accelerators that were free on average", room.Free),
		})
	} else {
		list = append(list, figure{"Free, but unusable", unknown, "not measured"})
	}
	return list
}

// totalChangeNote says how the total changed since the last report.
func (v *viewer) totalChangeNote() string {
	before := v.report.Before
	if before == nil {
		return "there is no report before this one"
	}
	change := v.report.Total.Cost.Sub(before.Cost)
	said := v.money.signedAmount(change) + " since last time"
	if s := ratioOf(change.Abs(), before.Cost); isKnown(s) {
		said += ", " + formatPercent(s)
	}
	return said
}

func (v *viewer) outcomeTable() *table {
	t := &table{ID: "outcomes", Caption: "Cost by outcome", Of: "Outcome", Main: "Cost, " + v.money.code, Second: "Pods"}
	for _, o := range v.report.Outcomes {
		l := line{Name: clipName(o.Name), Main: v.money.bareAmount(o.Cost), Second: formatCount(o.Pods), Barred: isKnown(o.Share)}
		l.Part = barWidth(o.Share)
		l.Whole = l.Part
		l.Detail = formatPercent(o.Share)
		t.Lines = append(t.Lines, l)
	}
	return t
}

// clusterFacts are of the whole cluster: a personal page has none.
func (v *viewer) clusterFacts() []fact {
	if v.options.Person != "" {
		return nil
	}
	r := v.report
	var list []fact
	if f := r.Forecast; f != nil {
		list = append(list, fact{
			"Forecast of the next period", v.money.roundAmount(f.Cost),
			fmt.Sprintf("With a probability of 80 %% between %s and %s, estimated from %s periods.",
				v.money.roundAmount(f.Low), v.money.roundAmount(f.High), formatCount(int64(f.Periods))),
		})
	} else {
		list = append(list, fact{"Forecast of the next period", unknown, "There are too few periods for an estimate."})
	}
	lost := r.Lost.Preemptions.Add(r.Lost.Restarts)
	list = append(list, waitingFact(r.Waits), fact{"Lost work", v.money.withCurrency(lost), fmt.Sprintf(
		"%s by preemption, charged to the jobs that got the room, and %s by restarts, in %s incidents. It counts from the last "+
			"reported "+
			"checkpoint. Report each checkpoint (tideline.io/checkpoint-done), and save more often if the loss is large.",
		v.money.withCurrency(r.Lost.Preemptions), v.money.withCurrency(r.Lost.Restarts), formatCount(r.Lost.Incidents))})
	if room := r.Room; room != nil {
		f := fact{"Room", fmt.Sprintf("%.1f accelerators free", room.Free), "On average."}
		if room.Unusable.Known {
			f.Note += fmt.Sprintf(" %s of them could not be used by %s.", formatPercent(room.Unusable), clipName(room.Mix))
		}
		list = append(list, f)
	}
	if r.Merges.Runs > 0 {
		list = append(list, fact{"Merges", v.money.withCurrency(r.Merges.Cost), fmt.Sprintf(
			"%s runs in the pools, whose accelerators were in use %s of the time.", formatCount(r.Merges.Runs),
			formatPercent(r.Merges.Utilization))})
	}
	return list
}

func waitingFact(w cost.Waits) fact {
	if w.Gangs == 0 {
		return fact{"Waiting", "none", "No gang was placed in this time."}
	}
	f := fact{"Waiting", formatDuration(w.Median), ""}
	f.Note = "Half of " + formatCount(w.Gangs) + " gangs waited less. The longest wait was " + formatDuration(w.Longest)
	if w.LongestOf != "" {
		f.Note += ", of " + clipName(w.LongestOf)
	}
	f.Note += "."
	return f
}

// viewNotes are the report's, which a personal one has none of, and what is to be known of what is shown.
func (v *viewer) viewNotes() []string {
	var list []string
	for _, note := range v.report.Notes {
		list = append(list, clipNote(note))
	}
	if partial := v.partialDays(); partial != "" {
		list = append(list, partial)
	}
	if v.options.Person != "" {
		if u := v.report.Total.Uncertain; isKnown(u) && u.Value > 0 {
			list = append(list, formatPercent(u)+" of the time is on days on which the end of a pod is a guess, because no "+
				"operator was running.")
		}
		whose := "your figures"
		if !v.options.isPersonal() {
			whose = "the figures of your people"
		}
		list = append(list, "This page contains "+whose+" only.")
	}
	return append(list, "Every amount is rounded by itself, so a sum of rounded amounts may differ in its last digits.")
}

// partialDays says which days of the charts are not whole. A day is whole if it lasts until the next midnight of the zone and
// began at one.
func (v *viewer) partialDays() string {
	var names []string
	for i, day := range v.report.Days {
		end := v.report.Period.To
		if i+1 < len(v.report.Days) {
			end = v.report.Days[i+1].From
		}
		y, m, d := day.From.Date()
		if day.From.Equal(time.Date(y, m, d, 0, 0, 0, 0, day.From.Location())) &&
			end.Equal(time.Date(y, m, d+1, 0, 0, 0, 0, day.From.Location())) {
			continue
		}
		names = append(names, day.From.Format("Mon 2 Jan"))
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "In the charts " + names[0] + " is a part of a day."
	default:
		return "In the charts " + strings.Join(names, " and ") + " are parts of a day."
	}
}

// largestRow is the first row with the largest amount; nil if no row has a positive one.
func largestRow(rows []cost.Row, amount func(cost.Row) decimal.Decimal) *cost.Row {
	var found *cost.Row
	for i := range rows {
		if a := amount(rows[i]); a.IsPositive() && (found == nil || a.GreaterThan(amount(*found))) {
			found = &rows[i]
		}
	}
	return found
}

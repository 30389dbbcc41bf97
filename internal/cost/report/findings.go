package report

import (
	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/text"
)

func recoverableOf(row cost.Row) decimal.Decimal { return row.Recoverable }

// findings are what a reader should know who reads nothing else: what can be saved and with whom, who has accelerators and does
// not use them, and what changed.
func (v *viewer) findings() []finding {
	saving, task := v.largestSaving()
	return []finding{saving, v.leastUsed(task), v.totalChange()}
}

// largestSaving is the largest waste that can be recovered, and the task that it names.
func (v *viewer) largestSaving() (finding, cost.Key) {
	tasks := v.report.By[cost.ByTask]
	if !hasKnownUse(v.report.Total) {
		return finding{
			"What can be saved is unknown, because nobody saw what was used.", "See whether Prometheus is asked, and answers.",
		}, cost.Key{}
	}
	if v.options.Person != "" {
		task := largestRow(tasks, recoverableOf)
		if task == nil {
			return finding{"You asked for no more than you need.", "There is nothing to do."}, cost.Key{}
		}
		mine := v.report.Total.Recoverable
		return finding{"You can save " + v.money.roundAmount(mine) + ".", v.adviceOn(*task, mine)}, task.Key
	}
	user := largestRow(v.report.By[cost.ByUser], recoverableOf)
	if user == nil {
		return finding{"Nothing can be saved by asking for less.", "Nobody asked for more than sizing would have granted."}, cost.Key{}
	}
	who, _ := rowName(cost.ByUser, user.Key)
	what := "Most can be saved with " + who + ": " + v.money.roundAmount(user.Recoverable) + "."
	if task := largestRow(ownedBy(tasks, user.Key.User), recoverableOf); task != nil {
		return finding{what, v.adviceOn(*task, user.Recoverable)}, task.Key
	}
	return finding{what, "That was asked for, not used, and is above what sizing would have granted."}, cost.Key{}
}

// ownedBy are the tasks that only a user has. Those of nobody are nobody's: tasks that several have name no user either.
func ownedBy(tasks []cost.Row, user string) []cost.Row {
	var list []cost.Row
	for _, task := range tasks {
		if user != "" && task.Key.User == user {
			list = append(list, task)
		}
	}
	return list
}

// adviceOn says what to do about what a task wastes, of a whole that can be saved.
func (v *viewer) adviceOn(task cost.Row, whole decimal.Decimal) string {
	said := v.money.roundAmount(task.Recoverable) + " of it with " + v.taskName(task) + ". "
	if task.Recoverable.Equal(whole) {
		said = "All of it with " + v.taskName(task) + ". "
	}
	switch {
	case isKnown(task.Utilization) && task.Utilization.Value < 0.05:
		return said + "Its accelerators are hardly in use: end it, or give them back until they are needed."
	case task.Key.Kind == "ElasticTrainingJob":
		return said + "Ask for less there, or set spec.sizing.mode to Enforce."
	default:
		return said + "Ask for less there."
	}
}

// leastUsed is what used accelerators least, of the ten tasks that cost most but for one that is named already.
func (v *viewer) leastUsed(named cost.Key) finding {
	total := v.report.Total
	costly, _ := rankRows(v.report.By[cost.ByTask], Cost, total.Cost)
	var row *cost.Row
	for _, task := range costly[:min(10, len(costly))] {
		if task.Key != named && isKnown(task.Utilization) && (row == nil || task.Utilization.Value < row.Utilization.Value) {
			row = task
		}
	}
	if row == nil {
		if !isKnown(total.Utilization) {
			return finding{"How far accelerators were in use is unknown.", "See whether Prometheus has metrics of accelerators."}
		}
		return finding{"Accelerators were in use " + formatPercent(total.Utilization) + " of the time.", "No other task stands out."}
	}
	of, do := "costly tasks ", "It cost "+v.money.roundAmount(row.Cost)
	if v.options.Person != "" {
		of = "tasks that you have "
	} else if isKnown(row.Share) {
		do += ", " + formatPercent(row.Share) + " of the total"
	}
	if row.Waste.IsPositive() {
		do += ", and " + v.money.roundAmount(row.Waste) + " of that was wasted"
	}
	if named != (cost.Key{}) {
		of = "other " + of
	}
	what := "Of the " + of + v.taskName(*row) + " used its accelerators least: " + formatPercent(row.Utilization) + " of the time."
	return finding{what, do + ". See what it waits for, give it fewer accelerators, or end it."}
}

// totalChange is how the total changed, and with whom.
func (v *viewer) totalChange() finding {
	before := v.report.Before
	if before == nil {
		return finding{"There is no report before this one to compare with.", "The next one will say what changed."}
	}
	change := v.report.Total.Cost.Sub(before.Cost)
	rose := change.IsPositive()
	verb := "fell"
	if rose {
		verb = "rose"
	}
	what := "The cost " + verb + " by " + v.money.roundAmount(change.Abs())
	if s := ratioOf(change.Abs(), before.Cost); isKnown(s) {
		what += ", " + formatPercent(s)
	}
	what += "."
	if change.IsZero() {
		what = "The cost is that of the last report."
	}
	dimension := cost.ByUser
	if v.options.Person != "" {
		dimension = cost.ByTask
	}
	row := largestRow(v.report.By[dimension], func(row cost.Row) decimal.Decimal {
		switch {
		case row.Before == nil:
			return decimal.Zero
		case rose:
			return row.Cost.Sub(*row.Before)
		default:
			return row.Before.Sub(row.Cost)
		}
	})
	if row == nil || change.IsZero() {
		return finding{what, "There is no single reason."}
	}
	who, _ := rowName(dimension, row.Key)
	if dimension == cost.ByTask {
		who = v.taskName(*row)
	}
	return finding{what, "Most with " + who + ": from " + v.money.roundAmount(*row.Before) + " to " +
		"" + v.money.roundAmount(row.Cost) + "."}
}

// taskName names a task in a sentence.
func (v *viewer) taskName(row cost.Row) string {
	said, _ := rowName(cost.ByTask, row.Key)
	return said
}

// clipNote is a sentence of the report's: one line, and not without end.
func clipNote(note string) string { return text.Clip(note, 500) }

package report

import (
	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/text"
)

func recoverableOf(row cost.Row) decimal.Decimal { return row.Recoverable }

// findings are the three things to know at least: what can be saved and by which task, which task does not use its
// accelerators, and what changed.
func (v *viewer) findings() []finding {
	saving, task := v.largestSaving()
	return []finding{saving, v.leastUsed(task), v.totalChange()}
}

// largestSaving is the largest waste that can be recovered, and the task that it names.
func (v *viewer) largestSaving() (finding, cost.Key) {
	tasks := v.report.By[cost.ByTask]
	if !hasKnownUse(v.report.Total) {
		return finding{
			"What can be saved is unknown, because there are no metrics of use.", "Check that Prometheus is configured and answers.",
		}, cost.Key{}
	}
	if v.options.isPersonal() {
		task := largestRow(tasks, recoverableOf)
		if task == nil {
			return finding{"You requested no more than you need.", "There is nothing to do."}, cost.Key{}
		}
		mine := v.report.Total.Recoverable
		return finding{"You can save " + v.money.roundAmount(mine) + ".", v.adviceOn(*task, mine)}, task.Key
	}
	user := largestRow(v.report.By[cost.ByUser], recoverableOf)
	if user == nil {
		return finding{"Smaller requests would save nothing.", "No task requested more than sizing would have granted."}, cost.Key{}
	}
	who, _ := rowName(cost.ByUser, user.Key)
	what := who + " can save most: " + v.money.roundAmount(user.Recoverable) + "."
	if task := largestRow(ownedBy(tasks, user.Key.User), recoverableOf); task != nil {
		return finding{what, v.adviceOn(*task, user.Recoverable)}, task.Key
	}
	return finding{what, "That was requested beyond what sizing would have granted, and not used."}, cost.Key{}
}

// ownedBy are the tasks that belong to one user alone. Tasks without a user are left out: either several users have them,
// or no user is known.
func ownedBy(tasks []cost.Row, user string) []cost.Row {
	var list []cost.Row
	for _, task := range tasks {
		if user != "" && task.Key.User == user {
			list = append(list, task)
		}
	}
	return list
}

// adviceOn says what to do about the waste of a task, which is a part of what can be saved.
func (v *viewer) adviceOn(task cost.Row, whole decimal.Decimal) string {
	said := v.money.roundAmount(task.Recoverable) + " of it in " + v.taskName(task) + ". "
	if task.Recoverable.Equal(whole) {
		said = "All of it in " + v.taskName(task) + ". "
	}
	switch {
	case isKnown(task.Utilization) && task.Utilization.Value < 0.05:
		return said + "Its accelerators are hardly used: end it, or release them until they are needed."
	case task.Key.Kind == "ElasticTrainingJob":
		return said + "Request less there, or set spec.sizing.mode to Enforce."
	default:
		return said + "Request less there."
	}
}

// leastUsed is the task that used its accelerators least, among the ten that cost most, except the one that is already named.
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
			return finding{"The use of accelerators is unknown.", "Check that Prometheus has metrics of accelerators."}
		}
		return finding{"Accelerators were in use " + formatPercent(total.Utilization) + " of the time.", "No other task stands out."}
	}
	do := "It cost " + v.money.roundAmount(row.Cost)
	if v.options.Person == "" && isKnown(row.Share) {
		do += ", " + formatPercent(row.Share) + " of the total"
	}
	what := v.taskName(*row) + " used its accelerators " + formatPercent(row.Utilization) + " of the time"
	if row.Waste.IsPositive() {
		what += ": " + v.money.roundAmount(row.Waste) + " wasted"
	}
	return finding{what + ".", do + ". Check what it waits for, give it fewer accelerators, or end it."}
}

// totalChange is how the total changed since the last report, and which row changed most.
func (v *viewer) totalChange() finding {
	before := v.report.Before
	if before == nil {
		return finding{"There is no earlier report to compare with.", "The next report will say what changed."}
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
		what = "The cost is the same as in the last report."
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
	return finding{what, who + " changed most: from " + v.money.roundAmount(*row.Before) + " to " +
		v.money.roundAmount(row.Cost) + "."}
}

// taskName names a task in a sentence.
func (v *viewer) taskName(row cost.Row) string {
	said, _ := rowName(cost.ByTask, row.Key)
	return said
}

// clipNote is a note of the report on one line of at most 500 bytes.
func clipNote(note string) string { return text.ClipLine(note, 500) }

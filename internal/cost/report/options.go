// Package report writes what a period cost: a page and a mail for people, CSV, JSON and a subset of FOCUS for programs. It is
// pure, and the same input makes the same bytes. Amounts of money are rounded here and nowhere else, half to even, to the minor
// units of their currency. What users wrote is data in every form: it makes no element, no formula, no header, and steers no
// terminal.
package report

import (
	"cmp"
	"slices"

	"github.com/tideline-io/tideline/internal/cost"
)

// Ranking is an order of rows.
type Ranking string

const (
	// Utilization ranks by use of accelerators, the lowest first, among rows that cost enough to matter.
	Utilization Ranking = "Utilization"
	// Cost ranks by cost, the highest first.
	Cost Ranking = "Cost"
	// Waste ranks by waste, the highest first.
	Waste Ranking = "Waste"
)

// Options are what is not in the figures.
type Options struct {
	// Name of the report.
	Name string
	// Revision of it, from 1; a later one takes the place of those before. Default 1.
	Revision int
	// Rankings that are shown. Default all, by utilization first.
	Rankings []Ranking
	// GroupBy are the dimensions of rows that are shown. Default user, team, task.
	GroupBy []cost.Dimension
	// Top is how many rows a ranking shows; the others are added up in one. Default 20.
	Top int
	// Person makes a personal report with this user's figures only. Empty for the whole report.
	Person string
	// People, with Person, are those whom that user leads: the report has their figures in place of the user's own.
	People []string
}

// isPersonal tells whether a report is of the person alone who reads it.
func (o Options) isPersonal() bool { return o.Person != "" && len(o.People) == 0 }

// whose says whose figures a report has that is not whole, as in "What alice used".
func (o Options) whose(clipped string) string {
	if len(o.People) > 0 {
		return "What the people of " + clipped + " used"
	}
	return "What " + clipped + " used"
}

func (o Options) withDefaults() Options {
	o.Revision = cmp.Or(o.Revision, 1)
	o.Top = cmp.Or(o.Top, 20)
	if len(o.Rankings) == 0 {
		o.Rankings = []Ranking{Utilization, Cost, Waste}
	}
	if len(o.GroupBy) == 0 {
		o.GroupBy = []cost.Dimension{cost.ByUser, cost.ByTeam, cost.ByTask}
	}
	if o.Person != "" {
		o.GroupBy = []cost.Dimension{cost.ByTask}
	}
	if len(o.People) > 0 {
		o.GroupBy = []cost.Dimension{cost.ByUser, cost.ByTask}
	}
	return o
}

// applyOptions is what may be shown, and with what options.
func applyOptions(r cost.Report, o Options) (cost.Report, Options) {
	o = o.withDefaults()
	if o.Person != "" {
		people := []string{o.Person}
		if len(o.People) > 0 {
			people = o.People
		}
		r = reportOfPeople(r, people)
	}
	return r, o
}

// reportOfPeople is what a report says of some people. It is made of what is theirs, and nothing is taken away from the whole:
// what a report learns to say later is not in it by itself. Tasks are in it that only one of them has.
func reportOfPeople(r cost.Report, people []string) cost.Report {
	mine := cost.Report{Period: r.Period, Currency: r.Currency, By: map[cost.Dimension][]cost.Row{}}
	for _, row := range r.By[cost.ByUser] {
		if !slices.Contains(people, row.Key.User) || row.Key.User == "" {
			continue
		}
		mine.By[cost.ByUser] = append(mine.By[cost.ByUser], row)
		own, rest := ownedBy(r.By[cost.ByTask], row.Key.User), row
		for _, task := range own {
			rest = subtractPart(rest, task)
		}
		if rest.Cost.IsPositive() {
			rest.Key = cost.Key{User: row.Key.User, Task: sharedTasks}
			own = append(own, rest)
		}
		mine.By[cost.ByTask] = append(mine.By[cost.ByTask], own...)
	}
	mine.Total = totalOf(mine.By[cost.ByUser], people)
	// Shares are of their own: what they paid and their share in the whole would tell the whole.
	mine.Total.Share = ratioOf(mine.Total.Cost, mine.Total.Cost)
	for _, rows := range mine.By {
		for i := range rows {
			rows[i].Share = ratioOf(rows[i].Cost, mine.Total.Cost)
		}
	}
	if before := mine.Total.Before; before != nil {
		mine.Before = &cost.Total{Cost: *before}
	}
	return mine
}

// totalOf is the sum of the rows of some people; the row itself of one.
func totalOf(rows []cost.Row, people []string) cost.Row {
	switch {
	case len(rows) == 1:
		return rows[0]
	case len(people) == 1:
		return cost.Row{}
	}
	each := make([]*cost.Row, len(rows))
	for i := range rows {
		each[i] = &rows[i]
	}
	sum := sumRows(each)
	for _, row := range each {
		sum.AcceleratorHours = sum.AcceleratorHours.Add(row.AcceleratorHours)
		sum.CPUHours, sum.MemoryGiBHours = sum.CPUHours.Add(row.CPUHours), sum.MemoryGiBHours.Add(row.MemoryGiBHours)
		sum.Runs, sum.Pods, sum.Goodput = sum.Runs+row.Runs, sum.Pods+row.Pods, sum.Goodput.AddGoodput(row.Goodput)
	}
	return sum
}

// sharedTasks is the row of a person's part in tasks that are not theirs alone.
const sharedTasks = "tasks with others"

// subtractPart is a row less a part of it; what is not a sum is unknown.
func subtractPart(row, part cost.Row) cost.Row {
	return cost.Row{
		Key:  row.Key,
		Cost: row.Cost.Sub(part.Cost), Waste: row.Waste.Sub(part.Waste), Recoverable: row.Recoverable.Sub(part.Recoverable),
		AcceleratorHours: row.AcceleratorHours.Sub(part.AcceleratorHours), CPUHours: row.CPUHours.Sub(part.CPUHours),
		MemoryGiBHours: row.MemoryGiBHours.Sub(part.MemoryGiBHours),
		Runs:           max(row.Runs-part.Runs, 0), Pods: max(row.Pods-part.Pods, 0), Goodput: row.Goodput.WithoutPart(part.Goodput),
	}
}
